"""Flowcharts: shapes, labels and ids that Mermaid takes."""

from __future__ import annotations

import re

from geomill.workflows.mermaid import to_mermaid
from tests.unit.workflows.samples import load, text

EVERY_TYPE = """
start: {type: start, next: [pick, my-task]}
my-task: {handler: echo, next: end}
pick:
  type: conditional
  condition_field: 5
  branches:
    - {condition: '< "10"', next: each}
    - {name: 'a|b #1', condition: "> 100", next: [each, end]}
    - {default: true, next: end}
each: {type: fan_out, source: [1], task: {handler: echo}, next: gather}
gather: {type: fan_in, next: end}
end: {type: end}
"""


def test_a_flowchart() -> None:
    assert to_mermaid(load(text(EVERY_TYPE.replace('"10"', "10")))) == (
        "flowchart TD\n"
        '    n0(["start"])\n'
        '    n1["my-task<br/>echo"]\n'
        '    n2{"pick"}\n'
        '    n3[/"each<br/>echo for each"\\]\n'
        '    n4[\\"gather"/]\n'
        '    n5(["end"])\n'
        "    n0 --> n2\n"
        "    n0 --> n1\n"
        "    n1 --> n5\n"
        '    n2 -->|"#lt; 10"| n3\n'
        '    n2 -->|"a|b #35;1"| n3\n'
        '    n2 -->|"a|b #35;1"| n5\n'
        '    n2 -->|"otherwise"| n5\n'
        "    n3 --> n4\n"
        "    n4 --> n5\n"
    )


def test_quotes_in_labels_are_escaped() -> None:
    drawn = to_mermaid(load(text(EVERY_TYPE)))
    assert '|"#lt; #quot;10#quot;"|' in drawn


def test_every_node_and_edge_is_drawn() -> None:
    workflow = load(text(EVERY_TYPE))
    lines = to_mermaid(workflow).splitlines()[1:]
    edges = [line for line in lines if "-->" in line]
    assert len(lines) - len(edges) == len(workflow.nodes)
    assert all(re.fullmatch(r"    n\d+ -->(\|\".*\"\|)? n\d+", edge) for edge in edges)
