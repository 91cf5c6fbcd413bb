"""The loader: problems of the shape at their lines, all of them at once, and the resolved workflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geomill.domain.engine.workflow import FanOutNode, TaskNode
from geomill.errors import WorkflowError
from geomill.workflows.loader import load_file
from tests.unit.workflows.samples import HANDLERS, MARK, QUEUES, load, marked_line, problems, text

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def task(lines: str) -> str:
    return text(f"START: {{type: start, next: t}}\nt:\n  next: END\n{lines}\nEND: {{type: end}}")


def fan_out(lines: str) -> str:
    nodes = (
        f"START: {{type: start, next: f}}\nf:\n  type: fan_out\n  source: [1]\n  next: END\n{lines}\nEND: {{type: end}}"
    )
    return text(nodes)


CASES = {
    "unknown key": (
        task(f"  handler: echo\n  timout_seconds: 5 {MARK}"),
        "nodes.t.timout_seconds: unknown key 'timout_seconds' (did you mean 'timeout_seconds'?)",
    ),
    "unknown key at the top": (
        text(head=f"workflow_id: a\nname: b\ndescripton: c {MARK}"),
        "descripton: unknown key 'descripton' (did you mean 'description'?)",
    ),
    "unknown key of an input": (
        text(inputs=f"x:\n  typ: string {MARK}"),
        "inputs.x.typ: unknown key 'typ' (did you mean 'type'?)",
    ),
    "unknown key of a retry": (
        task(f"  handler: echo\n  retry:\n    max_attempt: 5 {MARK}"),
        "nodes.t.retry.max_attempt: unknown key 'max_attempt' (did you mean 'max_attempts'?)",
    ),
    "unknown key of a fan-out's task": (
        fan_out(f"  task:\n    handler: echo\n    parms: {{}} {MARK}"),
        "nodes.f.task.parms: unknown key 'parms' (did you mean 'params'?)",
    ),
    "unknown key of a branch": (
        text(
            "S: {type: start, next: c}\nc:\n  type: conditional\n  condition_field: 1\n  branches:\n"
            f"    - default: true\n      next: E\n      nxt: E {MARK}\nE: {{type: end}}"
        ),
        "nodes.c.branches[0].nxt: unknown key 'nxt' (did you mean 'next'?)",
    ),
    "task key on an end": (
        text(f"S: {{type: start, next: E}}\nE:\n  type: end\n  next: S {MARK}"),
        "nodes.E.next: unknown key 'next' (use one of: description, type)",
    ),
    "missing key": (task("  params: {}").replace("t:\n", f"t: {MARK}\n"), "nodes.t: the key 'handler' is missing"),
    "missing key at the top": (text(head=f"workflow_id: a {MARK}"), "sample.yaml:1: the key 'name' is missing"),
    "missing key in a fan-out's task": (
        fan_out(f"  task: {MARK}\n    params: {{}}"),
        "nodes.f.task: the key 'handler' is missing",
    ),
    "unknown node type": (
        task(f"  type: tsk {MARK}\n  handler: echo"),
        "nodes.t.type: unknown node type \"tsk\" (did you mean 'task'?)",
    ),
    "node type that is no text": (task(f"  type: [task] {MARK}"), 'nodes.t.type: unknown node type ["task"]'),
    "node that is no mapping": (
        text(f"S: {{type: start, next: E}}\nt: 5 {MARK}\nE: {{type: end}}"),
        "nodes.t: a node is a mapping with a type, not 5",
    ),
    "bad node name": (
        text(f"S: {{type: start, next: E}}\nE: {{type: end}}\nmy node: {{handler: echo, next: E}} {MARK}"),
        'nodes.my node: "my node" cannot be a name (use letters',
    ),
    "wrong type": (
        task(f"  handler: echo\n  timeout_seconds: soon {MARK}"),
        'nodes.t.timeout_seconds: input should be a valid number, unable to parse string as a number (it is "soon")',
    ),
    "out of bounds": (
        task(f"  handler: echo\n  timeout_seconds: -1 {MARK}"),
        "nodes.t.timeout_seconds: input should be greater than 0 (it is -1)",
    ),
    "not one of the words": (
        task(f"  handler: echo\n  retry: {{backoff: expnential}} {MARK}"),
        "nodes.t.retry.backoff: \"expnential\" is not allowed here (did you mean 'exponential'?)",
    ),
    "on_failure of a task": (
        task(f"  handler: echo\n  on_failure: contine {MARK}"),
        "nodes.t.on_failure: \"contine\" is not allowed here (did you mean 'continue'?)",
    ),
    "on_failure of a fan-out": (
        fan_out(f"  task: {{handler: echo}}\n  on_failure: never {MARK}"),
        "nodes.f.on_failure: must be 'fail', 'continue' or 'tolerate: 5%' (it is \"never\")",
    ),
    "tolerance": (
        fan_out(f"  task: {{handler: echo}}\n  on_failure: {MARK}\n    tolerate: lots"),
        "nodes.f.on_failure: must be 'fail', 'continue' or 'tolerate: 5%' (it is {\"tolerate\": \"lots\"})",
    ),
    "input type": (
        text(inputs=f"x: {{type: str}} {MARK}"),
        "inputs.x.type: \"str\" is not allowed here (did you mean 'string'?)",
    ),
    "empty next": (task("  handler: echo").replace("next: END", f"next: [] {MARK}"), "nodes.t.next: 'next' is empty"),
    "nodes that are no mapping": ("workflow_id: a\nname: b\nnodes: 5 # <-\n", "nodes: input should be a valid dict"),
    "workflow id": (
        text(head=f"name: b\nworkflow_id: a b {MARK}"),
        'workflow_id: string should match pattern',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_mistake_of_shape_is_found_once_at_its_line(name: str) -> None:
    source, expected = CASES[name]
    (problem,) = problems(source)
    assert expected in str(problem)
    assert problem.line == marked_line(source)


def test_every_problem_is_told_at_once() -> None:
    source = text(
        """
        START: {type: start, next: [a, missing]}
        a: {handler: ecko, queue: nowhere, params: {x: "{{ inputs.nope }}"}, next: b}
        b: {handler: strict, params: {size: no}, next: END}
        END: {type: end}
        """,
        inputs="n: {type: integer, default: x}",
    )
    with pytest.raises(WorkflowError) as caught:
        load(source, "hello.yaml")
    lines = [problem.line for problem in caught.value.problems]
    assert caught.value.message == "hello.yaml has 7 problems"
    assert lines == sorted(lines) == [4, 6, 7, 7, 7, 8, 8]


def test_problems_of_shape_are_told_together() -> None:
    reported = problems(task("  handlr: echo\n  retry: {max_attempts: 0}\n  timeout_seconds: x"))
    places = ("nodes.t", "nodes.t.handlr", "nodes.t.retry.max_attempts", "nodes.t.timeout_seconds")
    assert {problem.where for problem in reported} == set(places)


def test_queue_and_timeout_are_written_out() -> None:
    nodes = load(
        text(
            """
            START: {type: start, next: [a, b, c]}
            a: {handler: strict, params: {blob_name: x}, next: END}
            b: {handler: strict, queue: dag-worker-tasks, timeout_seconds: 5, params: {blob_name: x}, next: END}
            c: {type: fan_out, source: [1], task: {handler: echo}, next: END}
            END: {type: end}
            """
        )
    ).nodes
    a, b, c = nodes["a"], nodes["b"], nodes["c"]
    assert isinstance(a, TaskNode)
    assert isinstance(b, TaskNode)
    assert isinstance(c, FanOutNode)
    assert (a.queue, a.timeout_seconds) == ("container-tasks", 600)
    assert (b.queue, b.timeout_seconds) == ("dag-worker-tasks", 5)
    assert (c.task.queue, c.task.timeout_seconds) == ("functionapp-tasks", 60)


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(text())
    assert load_file(path, handlers=HANDLERS, queues=QUEUES).workflow_id == "sample"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(WorkflowError, match="has 1 problem") as caught:
            load_file(path, handlers=HANDLERS, queues=QUEUES)
        assert "the file cannot be read" in str(caught.value.problems[0])


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_bytes(b"#" * 5_000_001)
    with pytest.raises(WorkflowError) as caught:
        load_file(path, handlers=HANDLERS, queues=QUEUES)
    assert "more than 5,000,000 bytes" in caught.value.problems[0].message


VALID: dict[str, Any] = yaml.safe_load(
    text(
        """
        START: {type: start, next: prepare}
        prepare: {handler: strict, params: {blob_name: "{{ inputs.name }}"}, retry: {max_attempts: 2}, next: route}
        route:
          type: conditional
          condition_field: "{{ nodes.prepare.output.size_mb }}"
          branches:
            - {condition: "< 10", next: each}
            - {default: true, next: other}
        each:
          type: fan_out
          source: "{{ inputs.list }}"
          task: {handler: echo, params: {x: "{{ item }}"}}
          next: gather
        gather: {type: fan_in, next: END}
        other: {handler: echo, on_failure: continue, next: END}
        END: {type: end}
        """,
        inputs="name: {default: x}\nlist: {type: array, default: [1]}\nn: {type: integer, minimum: 1, default: 2}",
        outputs='count: "{{ nodes.gather.output.count | default(0) }}"',
    )
)
NODES = list(VALID["nodes"])
WORDS = st.sampled_from(
    [*NODES, "type", "next", "handler", "task", "start", "end", "{{ item }}", "{{ nodes.each.output.total }}", "", "5%"]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | WORDS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, item in inner for place in places(item, (*path, key))]


def test_the_valid_one_is_valid() -> None:
    load(json.dumps(VALID))


@settings(patient, max_examples=300)
@given(st.data())
def test_a_mutation_gives_a_workflow_or_problems_with_lines(data: st.DataObject) -> None:
    mutant = json.loads(json.dumps(VALID))
    for _ in range(data.draw(st.integers(1, 3))):
        *above, key = data.draw(st.sampled_from(places(mutant)))
        parent = mutant
        for part in above:
            parent = parent[part]
        match data.draw(st.sampled_from(["drop", "rename", "replace", "word"])):
            case "drop":
                del parent[key]
            case "rename" if isinstance(parent, dict):
                parent[data.draw(st.text("abxtype_", min_size=1, max_size=6))] = parent.pop(key)
            case "word":
                parent[key] = data.draw(WORDS)
            case _:
                parent[key] = data.draw(JUNK)
        if not places(mutant):
            break
    problems(yaml.safe_dump(mutant, allow_unicode=True, sort_keys=False))


@settings(patient, max_examples=200)
@given(st.dictionaries(st.sampled_from(["workflow_id", "name", "nodes", "inputs", "outputs", "version"]), JUNK))
def test_any_mapping_gives_a_workflow_or_problems(value: dict[str, Any]) -> None:
    problems(yaml.safe_dump(value, allow_unicode=True))


@settings(patient, max_examples=300)
@given(st.text("{}%#|().[]'\"+-*/~<>=! abinputsnodes01,:", max_size=40) | st.text(max_size=20))
def test_any_template_is_read_or_refused(expression: str) -> None:
    source = json.loads(json.dumps(VALID))
    source["outputs"] = {"x": "{{ " + expression + " }}", "y": "{% " + expression, "z": expression}
    source["nodes"]["route"]["branches"][0]["condition"] = expression
    problems(yaml.safe_dump(source, allow_unicode=True))
