"""Every kind of mistake in a workflow: found, at its place, with its remedy. The faulty line ends in `# <-`."""

from __future__ import annotations

import time

import pytest

from geomill.domain.engine.checks import MOST_FINDINGS
from tests.unit.workflows.samples import MARK, load, marked_line, problems, text

CHAIN = """
START: {{type: start, next: a}}
a: {{handler: strict, params: {{blob_name: x}}, next: b}}
b:
  handler: echo
  params:
    value: "{{{{ {expression} }}}}" # <-
  next: END
END: {{type: end}}
"""
DIAMOND = """
START: {{type: start, next: route}}
route:
  type: conditional
  condition_field: 5
  branches:
    - condition: "< 10"
      next: small
    - default: true
      next: large
small: {{handler: echo, next: join}}
large: {{handler: echo, next: join}}
join:
  handler: echo
  params:
    value: "{{{{ {expression} }}}}" # <-
  next: END
END: {{type: end}}
"""
ROUTE = """
START: {{type: start, next: route}}
route:
  type: conditional
  condition_field: "{{{{ inputs.n }}}}"
  branches: {after}
{branches}
a: {{handler: echo, next: END}}
END: {{type: end}}
"""


def expression(source: str, shape: str = CHAIN) -> str:
    return text(shape.format(expression=source), inputs="n: {type: integer}\nname: {}\nlist: {type: array}")


def branches(lines: str, after: str = "") -> str:
    return text(ROUTE.format(branches=lines, after=after), inputs="n: {type: integer}")


def one_task(lines: str) -> str:
    return text(f"START: {{type: start, next: t}}\nt:\n{lines}\n  next: END\nEND: {{type: end}}")


def fan_out(lines: str) -> str:
    nodes = f"START: {{type: start, next: f}}\nf:\n  type: fan_out\n{lines}\n  next: END\nEND: {{type: end}}"
    return text(nodes, inputs="list: {type: array}")


def one_input(lines: str) -> str:
    return text(inputs=f"x:\n{lines}")


STRUCTURE = {
    "no start": (
        text("a: {handler: echo, next: END}\nEND: {type: end}").replace("nodes:", f"nodes: {MARK}"),
        "nodes: there is no start node (add one with 'type: start')",
    ),
    "two starts": (
        text(f"S: {{type: start, next: E}}\nT: {{type: start, next: E}} {MARK}\nE: {{type: end}}"),
        "nodes.T: there are 2 start nodes: S, T",
    ),
    "no end": (
        text("S: {type: start, next: a}\na: {handler: echo, next: b}\nb: {handler: echo, next: a}").replace(
            "nodes:", f"nodes: {MARK}"
        ),
        "nodes: there is no end node",
    ),
    "unknown target": (
        one_task("  handler: echo").replace("next: END", f"next: EDN {MARK}"),
        "nodes.t.next[0]: there is no node 'EDN' (did you mean 'END'?)",
    ),
    "unknown target in a list": (
        text(f"S:\n  type: start\n  next:\n    - E\n    - nope {MARK}\nE: {{type: end}}"),
        "nodes.S.next[1]: there is no node 'nope'",
    ),
    "unknown target of a branch": (
        branches(f"    - default: true\n      next: aa {MARK}"),
        "nodes.route.branches[0].next[0]: there is no node 'aa'",
    ),
    "edge into the start": (
        text(f"S: {{type: start, next: [a, E]}}\na:\n  handler: echo\n  next: S {MARK}\nE: {{type: end}}"),
        "nodes.a.next[0]: 'S' is the start, and no edge may lead to it",
    ),
    "cycle": (
        text(
            f"S: {{type: start, next: a}}\na: {{handler: echo, next: b}} {MARK}\nb: {{handler: echo, next: [c, E]}}\n"
            "c: {handler: echo, next: a}\nE: {type: end}"
        ),
        "nodes.a: the nodes form a cycle: a → b → c → a",
    ),
    "self loop": (
        text(f"S: {{type: start, next: a}}\na: {{handler: echo, next: [a, E]}} {MARK}\nE: {{type: end}}"),
        "nodes.a: the nodes form a cycle: a → a",
    ),
    "unreachable": (
        text(f"S: {{type: start, next: E}}\na: {{handler: echo, next: E}} {MARK}\nE: {{type: end}}"),
        "nodes.a: no path from the start leads to this node",
    ),
    "cycle that no end follows": (
        text(
            f"S: {{type: start, next: [a, E]}}\na: {{handler: echo, next: b}} {MARK}\n"
            "b: {handler: echo, next: a}\nE: {type: end}"
        ),
        "nodes.a: the nodes form a cycle: a → b → a",
    ),
}

HANDLER = {
    "unknown handler": (
        one_task(f"  handler: ecko {MARK}"),
        "nodes.t.handler: there is no handler 'ecko' (did you mean 'echo'?)",
    ),
    "unknown handler of a fan-out": (
        fan_out(f"  source: [1]\n  task:\n    handler: ecko {MARK}"),
        "nodes.f.task.handler: there is no handler 'ecko'",
    ),
    "unknown queue": (
        one_task(f"  handler: echo\n  queue: container-task {MARK}"),
        "nodes.t.queue: there is no queue 'container-task' (did you mean 'container-tasks'?)",
    ),
    "the handler's queue is unknown": (
        one_task(f"  handler: stray {MARK}"),
        "nodes.t.handler: the queue 'elsewhere' of the handler 'stray' is unknown",
    ),
    "unknown param": (
        one_task(f"  handler: strict\n  params:\n    blob_name: x\n    blobname: y {MARK}"),
        "nodes.t.params.blobname: the handler 'strict' has no param 'blobname' (did you mean 'blob_name'?)",
    ),
    "missing param": (
        one_task(f"  handler: strict\n  params: {MARK}\n    size: 5"),
        "nodes.t.params: the param 'blob_name' of the handler 'strict' is missing",
    ),
    "param of the wrong type": (
        one_task(f"  handler: strict\n  params:\n    blob_name: x\n    size: many {MARK}"),
        "nodes.t.params.size: input should be a valid integer",
    ),
    "param out of bounds, by its other name": (
        one_task(f"  handler: strict\n  params:\n    blob_name: x\n    bytes: -1 {MARK}"),
        "nodes.t.params.bytes: input should be greater than or equal to 0 (it is -1)",
    ),
    "part of a param": (
        one_task(f"  handler: strict\n  params:\n    blob_name: x\n    bounds:\n      - 1\n      - no {MARK}"),
        "nodes.t.params.bounds[1]: input should be a valid number",
    ),
    "param that the handler's own validator refuses": (
        one_task(f"  handler: strict\n  params:\n    blob_name: /x {MARK}\n    size: '{{{{ job.job_id }}}}'"),
        "nodes.t.params.blob_name: must be relative",
    ),
    "params that do not go together": (
        one_task(f"  handler: fussy\n  params: {{first: 3, second: 2}} {MARK}"),
        "nodes.t.params: first must not be above second",
    ),
}

ROUTING = {
    "no default": (
        branches("    - condition: '< 5'\n      next: a", after=MARK),
        "nodes.route.branches: no branch is the default",
    ),
    "two defaults": (
        branches(f"    - default: true\n      next: a\n    - default: true {MARK}\n      next: a"),
        "nodes.route.branches[1].default: there is another default branch",
    ),
    "neither": (
        branches(f"    - default: true\n      next: a\n    - next: a {MARK}"),
        "nodes.route.branches[1]: the branch has neither a condition nor 'default: true'",
    ),
    "both": (
        branches(f"    - condition: '< 5' {MARK}\n      default: true\n      next: a"),
        "nodes.route.branches[0]: the branch has both a condition and 'default: true'",
    ),
    "bad condition": (
        branches(f"    - default: true\n      next: a\n    - next: a\n      condition: less than 5 {MARK}"),
        "nodes.route.branches[1].condition: the condition 'less than 5' cannot be read (write an operator",
    ),
    "empty condition": (
        branches(f"    - default: true\n      next: a\n    - next: a\n      condition: '' {MARK}"),
        "nodes.route.branches[1].condition: the condition '' cannot be read",
    ),
    "source is no list": (
        fan_out(f"  task: {{handler: echo}}\n  source: 5 {MARK}"),
        "nodes.f.source: the source must be a list, not 5",
    ),
    "bad template in params": (expression("inputs.n"[:-1] + "."), "nodes.b.params.value: the template"),
    "bad template in a source": (
        fan_out(f"  task: {{handler: echo}}\n  source: '{{{{ inputs.list' {MARK}"),
        "nodes.f.source: the template '{{ inputs.list' cannot be read",
    ),
    "bad template in outputs": (
        text(outputs=f"a:\n  - 1\n  - '{{{{ nope( }}}}' {MARK}"),
        "outputs.a[1]: the template",
    ),
    "unknown filter": (expression("inputs.n | uper"), "nodes.b.params.value: the template"),
    "too deep a template": (expression("(" * 3000 + "1" + ")" * 3000), "nodes.b.params.value: the template"),
}

REFERENCES = {
    "unknown root": (expression("input.n"), "'input.n' begins with the unknown 'input' (did you mean 'inputs'?)"),
    "item outside of a fan-out": (expression("item.x"), "'item' exists only in the params of a fan_out's task"),
    "index in a fan-out's source": (
        fan_out(f"  source: '{{{{ index }}}}' {MARK}\n  task: {{handler: echo}}"),
        "nodes.f.source: 'index' exists only",
    ),
    "unknown root in a fan-out": (
        fan_out(f"  source: [1]\n  task:\n    handler: echo\n    params: {{x: '{{{{ itm }}}}'}} {MARK}"),
        "nodes.f.task.params.x: 'itm' begins with the unknown 'itm' (did you mean 'item'?)",
    ),
    "unknown input": (expression("inputs.nam"), "'inputs.nam' names the unknown input 'nam' (did you mean 'name'?)"),
    "field of a scalar input": (expression("inputs.n.x"), "'inputs.n.x' does not exist: an integer has no field 'x'"),
    "unknown field of the job": (expression("job.id"), "'job.id' does not exist: there is no field 'id'"),
    "unknown node": (
        expression("nodes.aa.output"),
        "'nodes.aa.output' names the unknown node 'aa' (did you mean 'a'?)",
    ),
    "all nodes": (expression("nodes"), "'nodes' is incomplete"),
    "node alone": (expression("nodes.a"), "'nodes.a' is incomplete"),
    "dynamic node": (expression("nodes[inputs.name].output"), "'nodes' is incomplete"),
    "part": (
        expression("nodes.a.outputs.x"),
        "node 'a' has no 'outputs', only output, status and error (did you mean 'output'?)",
    ),
    "part without output": (expression("nodes.a.size_mb"), "node 'a' has no 'size_mb'"),
    "field of a status": (expression("nodes.a.status.x"), "'nodes.a.status.x' does not exist: a string has no field"),
    "not upstream": (
        text(
            "S: {type: start, next: [a, b]}\na: {handler: echo, next: E}\n"
            f"b:\n  handler: echo\n  params: {{x: '{{{{ nodes.a.output }}}}'}} {MARK}\n  next: E\nE: {{type: end}}"
        ),
        "nodes.b.params.x: node 'a' is not upstream of 'b'",
    ),
    "itself": (expression("nodes.b.output.task_id"), "node 'b' refers to itself"),
    "start": (expression("nodes.START.output.n"), "'START' is of the type start, which has no output"),
    "end": (text(outputs=f"x: '{{{{ nodes.END.output }}}}' {MARK}"), "outputs.x: 'END' is of the type end"),
    "may be skipped": (
        expression("nodes.small.output.task_id", DIAMOND),
        "may be missing: node 'small' may be skipped (give it a value with | default(...))",
    ),
    "may be skipped, in outputs": (
        expression("inputs.n", DIAMOND).replace(MARK, "") + f"outputs:\n  x: '{{{{ nodes.large.output }}}}' {MARK}\n",
        "outputs.x: 'nodes.large.output' may be missing: node 'large' may be skipped",
    ),
    "may fail": (
        expression("nodes.a.output.size_mb", CHAIN.replace("next: b}}", "next: b, on_failure: continue}}")),
        "'nodes.a.output.size_mb' may be missing: node 'a' may fail, with 'on_failure: continue'",
    ),
}

FIELDS = {
    "size": "there is no field 'size' (did you mean 'size_mb'?)",
    "size_mb.unit": "a number has no field 'unit'",
    "bands.name": "a list has no field 'name' (read an item by its position, as in [0])",
    "bands[0].nam": "there is no field 'nam' (did you mean 'name'?)",
    "bands[0].name.x": "a string has no field 'x'",
    "extra.anything.nam": "there is no field 'nam'",
    "best.nam": "there is no field 'nam'",
    "either.nam": "there is no field 'nam'",
    "shape.x": "a list has no field 'x'",
    "area.x": "a number has no field 'x'",
    "fild | default(1)": "there is no field 'fild'",
}
GOOD_FIELDS = (
    "size_mb", "bands[0].name", "bands[-1].mean", "bands[0].name[0]", "extra.x.name", "best.name", "either.name",
    "either[0]", "shape[1]", "crs", "srs", "area", "free.whatever.there", "bands | length",
)  # fmt: skip

INPUTS = {
    "default of the wrong type": (
        one_input(f"  type: integer\n  default: five {MARK}"),
        'inputs.x.default: the default must be an integer, not "five"',
    ),
    "default above the maximum": (
        one_input(f"  type: number\n  maximum: 3\n  default: 3.5 {MARK}"),
        "inputs.x.default: the default must be at most 3, not 3.5",
    ),
    "default not in the enum": (
        one_input(f"  enum: [a, b]\n  default: c {MARK}"),
        'inputs.x.default: the default must be one of "a", "b", not "c"',
    ),
    "default that does not match": (
        one_input(f"  pattern: '^[a-z]+$'\n  default: A {MARK}"),
        "inputs.x.default: the default must match the pattern '^[a-z]+$'",
    ),
    "default too long": (
        one_input(f"  type: array\n  max_length: 1\n  default: [1, 2] {MARK}"),
        "inputs.x.default: the default must have at most 1 items, not 2",
    ),
    "pattern": (one_input(f"  pattern: '(' {MARK}"), "inputs.x.pattern: the pattern is not a regular expression"),
    "minimum above maximum": (
        one_input(f"  type: integer\n  minimum: 5 {MARK}\n  maximum: 4"),
        "inputs.x.minimum: the minimum 5 is above the maximum",
    ),
    "min_length above max_length": (
        one_input(f"  min_length: 5 {MARK}\n  max_length: 4"),
        "inputs.x.min_length: the min_length 5 is above the max_length",
    ),
    "minimum of a string": (
        one_input(f"  minimum: 5 {MARK}"),
        "inputs.x.minimum: 'minimum' is for integer or number, not for string",
    ),
    "length of a number": (
        one_input(f"  type: number\n  max_length: 5 {MARK}"),
        "inputs.x.max_length: 'max_length' is for string or array, not for number",
    ),
    "pattern of a number": (
        one_input(f"  type: number\n  pattern: x {MARK}"),
        "inputs.x.pattern: 'pattern' is for string, not for number",
    ),
    "enum of the wrong type": (
        one_input(f"  type: integer\n  enum:\n    - 1\n    - true {MARK}"),
        "inputs.x.enum[1]: true is not of the type integer",
    ),
}

CASES = {**STRUCTURE, **HANDLER, **ROUTING, **REFERENCES, **INPUTS}


@pytest.mark.parametrize("name", CASES)
def test_each_mistake_is_found_at_its_line(name: str) -> None:
    source, expected = CASES[name]
    reported = problems(source)
    fitting = [problem for problem in reported if expected in str(problem)]
    assert fitting, [str(problem) for problem in reported]
    assert fitting[0].line == marked_line(source), str(fitting[0])


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("no end", "edge into the start")])
def test_a_mistake_is_reported_once(name: str) -> None:
    assert len(problems(CASES[name][0])) == 1, [str(problem) for problem in problems(CASES[name][0])]


@pytest.mark.parametrize("path", FIELDS)
def test_fields_that_an_output_lacks(path: str) -> None:
    (problem,) = problems(expression(f"nodes.a.output.{path}"))
    assert FIELDS[path] in str(problem)


@pytest.mark.parametrize("path", GOOD_FIELDS)
def test_fields_that_an_output_has(path: str) -> None:
    load(expression(f"nodes.a.output.{path}"))


@pytest.mark.parametrize(
    ("aggregation", "fields"),
    [
        ("collect", {"results", "count"}),
        ("concat", {"results", "count"}),
        ("sum", {"total", "count"}),
        ("first", {"result", "count"}),
        ("last", {"result", "count"}),
        ("count", {"count"}),
    ],
)
def test_fields_of_a_fan_in(aggregation: str, fields: set[str]) -> None:
    nodes = f"S: {{type: start, next: g}}\ng: {{type: fan_in, aggregation: {aggregation}, next: E}}\nE: {{type: end}}"
    for field in ("results", "result", "total", "count", "completed"):
        reported = problems(text(nodes, outputs=f"x: '{{{{ nodes.g.output.{field} }}}}'"))
        assert bool(reported) is (field not in fields)


@pytest.mark.parametrize(
    "reference",
    ["nodes.f.output.total", "nodes.f.output.completed", "nodes.f.output.failed", "nodes.f.status"],
)
def test_fields_of_a_fan_out(reference: str) -> None:
    source = fan_out("  source: '{{ inputs.list }}'\n  task: {handler: echo, params: {x: '{{ item[0] ~ index }}'}}")
    load(source + f"outputs:\n  x: '{{{{ {reference} }}}}'\n")
    assert problems(source + "outputs:\n  x: '{{ nodes.f.output.results }}'\n")


@pytest.mark.parametrize(
    "source",
    [
        "nodes.route.output.branch",
        "nodes.route.output.value.anything",
        "nodes.small.output.task_id | default(nodes.large.output.task_id | default('none'))",
        "nodes.small.output.task_id if nodes.small.status == 'completed' else 'none'",
        "nodes.small.status",
        "nodes.small.error",
        "nodes.small.output is defined",
        "(nodes.small | default({})).output | default(1)",
        "inputs.list[0].anything",
        "inputs | length",
        "range(3) | list",
        "job.job_id",
    ],
)
def test_what_may_be_read_behind_a_conditional(source: str) -> None:
    load(expression(source, DIAMOND))


@pytest.mark.parametrize("which", ["nodes.my-node.output", "inputs.my-input"])
def test_a_name_with_a_dash_needs_brackets(which: str) -> None:
    nodes = "S: {type: start, next: my-node}\nmy-node: {handler: echo, next: E}\nE: {type: end}"
    reported = problems(text(nodes, inputs="my-input: {}", outputs=f"x: '{{{{ {which} }}}}'"))
    assert any("with a dash in brackets" in problem.hint for problem in reported)
    load(text(nodes, inputs="my-input: {}", outputs="x: \"{{ nodes['my-node'].output }} {{ inputs['my-input'] }}\""))


def test_params_from_templates_are_not_judged() -> None:
    load(one_task("  handler: strict\n  params: {blob_name: '{{ job.job_id }}', size: '{{ 5 }}'}"))
    load(one_task("  handler: fussy\n  params: {first: 5, second: '{{ 9 }}'}"))
    load(one_task("  handler: broken\n  params: {values: '{{ job }}'}"))
    load(one_task("  handler: plain\n  params: {anything: goes}"))


def test_a_conditional_may_have_a_constant_and_a_pattern() -> None:
    load(
        branches(r"""    - condition: matches '^\d+$'
      next: a
    - default: true
      next: END""")
    )


def test_several_cycles_are_each_shown_once() -> None:
    nodes = """
    S: {type: start, next: [a, c, E]}
    a: {handler: echo, next: b}
    b: {handler: echo, next: [a, x]}
    c: {handler: echo, next: d}
    d: {handler: echo, next: c}
    x: {handler: echo, next: E}
    E: {type: end}
    """
    messages = [problem.message for problem in problems(text(nodes))]
    assert messages == ["the nodes form a cycle: a → b → a", "the nodes form a cycle: c → d → c"]


def test_the_number_of_findings_is_bounded() -> None:
    nodes = [f"n{i}: {{handler: nope, next: E}}" for i in range(500)]
    targets = ", ".join(f"n{i}" for i in range(500))
    reported = problems(text(f"S: {{type: start, next: [{targets}]}}\n" + "\n".join(nodes) + "\nE: {type: end}"))
    assert len(reported) == MOST_FINDINGS + 1
    assert any("there are more problems" in problem.message for problem in reported)


def chain(length: int) -> str:
    lines = ["START: {type: start, next: n0}", "n0: {handler: echo, next: n1}"]
    for i in range(1, length):
        following = f"n{i + 1}" if i < length - 1 else "END"
        lines.append(
            f"n{i}: {{handler: echo, params: {{x: '{{{{ nodes.n{i - 1}.output.task_id }}}}'}}, next: {following}}}"
        )
    return text("\n".join([*lines, "END: {type: end}"]))


def test_a_long_chain_is_checked_in_seconds() -> None:
    source = chain(10_000)
    begun = time.process_time()  # not the clock on the wall: the machine may be busy with something else
    load(source)
    assert time.process_time() - begun < 20


@pytest.mark.slow
def test_a_long_chain_with_a_cycle_is_checked_too() -> None:
    source = chain(5_000).replace("next: END", "next: [n0, END]")
    assert any("form a cycle" in problem.message for problem in problems(source))


def test_too_many_nodes() -> None:
    (problem,) = problems(text("\n".join(f"n{i}: {{type: end}}" for i in range(20_001))))
    assert "more than 20000" in problem.message


WHOLE = """
START: {{type: start, next: each}}
each:
  type: fan_out
  source: [1]
  task:
    handler: strict
    params: {params} # <-
  next: END
END: {{type: end}}
"""


def test_params_may_be_one_template() -> None:
    load(text(WHOLE.format(params='"{{ item }}"')))


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ('"text"', "is text, not params"),
        ('"{{ item }} and more"', "is text, not params"),
        ('"{{ itm }}"', "begins with the unknown 'itm'"),
        ("[1]", "must be a mapping, or one template"),
        ("7", "must be a mapping, or one template"),
    ],
)
def test_params_that_cannot_be(params: str, words: str) -> None:
    source = text(WHOLE.format(params=params))
    (problem,) = problems(source)
    assert words in problem.message
    assert problem.line == marked_line(source)
