"""Templates: what they read, as the checks of a workflow see it."""

from __future__ import annotations

import pytest

from geomill.domain.engine.expressions import Reference, compile_value


def read(template: str) -> dict[str, bool]:
    """Every path that is read, and whether its absence is coped with."""
    return {str(reference): reference.optional for reference in compile_value(template).references}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("plain", []),
        ("{{ 1 + 2 }}", []),
        ("{{ inputs.a }}", ["inputs.a"]),
        ("{{ inputs['a'].b[0] }}", ["inputs.a.b[0]"]),
        ("{{ inputs.a + nodes.b.output.c }}", ["inputs.a", "nodes.b.output.c"]),
        ("{{ inputs.a }} and {{ inputs.b }}", ["inputs.a", "inputs.b"]),
        ("{{ inputs.a | join(inputs.b) }}", ["inputs.a", "inputs.b"]),
        ("{{ inputs.a[inputs.b] }}", ["inputs.a", "inputs.b"]),
        ("{{ inputs.a[1:inputs.b] }}", ["inputs.a", "inputs.b"]),
        ("{{ inputs.a.upper() }}", ["inputs.a"]),
        ("{{ inputs.a.replace(inputs.b, inputs.c) }}", ["inputs.a", "inputs.b", "inputs.c"]),
        ("{{ inputs.a.format(x=inputs.b) }}", ["inputs.a", "inputs.b"]),
        ("{{ inputs.a.strip().upper() }}", ["inputs.a"]),
        ("{{ range(inputs.a) }}", ["inputs.a"]),
        ("{{ {'k': inputs.a, inputs.b: 1} }}", ["inputs.a", "inputs.b"]),
        ("{% for row in inputs.a %}{{ row.x }}{{ inputs.b }}{% endfor %}", ["inputs.a", "inputs.b"]),
        ("{% for k, v in inputs.a | items %}{{ k }}{{ v }}{{ loop.index }}{% endfor %}", ["inputs.a"]),
        ("{% set y = inputs.a %}{{ y.z }}", ["inputs.a"]),
    ],
)
def test_every_path_is_found_and_no_local_name(template: str, expected: list[str]) -> None:
    assert sorted(read(template)) == sorted(expected)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ inputs.a | default(inputs.b) }}", {"inputs.a": True, "inputs.b": False}),
        ("{{ inputs.a | d(1) }}", {"inputs.a": True}),
        ("{{ inputs.a | default(inputs.b) | default(1) }}", {"inputs.a": True, "inputs.b": True}),
        ("{{ inputs.a is defined }}", {"inputs.a": True}),
        ("{{ inputs.a is undefined }}", {"inputs.a": True}),
        ("{{ inputs.a is none }}", {"inputs.a": False}),
        ("{{ inputs.a if inputs.b else inputs.c }}", {"inputs.a": True, "inputs.b": False, "inputs.c": True}),
        ("{% if inputs.a %}{{ inputs.b }}{% endif %}", {"inputs.a": False, "inputs.b": True}),
        ("{{ (inputs.a | default(1)) + inputs.b }}", {"inputs.a": True, "inputs.b": False}),
        ("{{ inputs.a | upper }}", {"inputs.a": False}),
    ],
)
def test_a_path_is_optional_where_its_absence_is_coped_with(template: str, expected: dict[str, bool]) -> None:
    assert read(template) == expected


def test_a_reference_reads_as_it_is_written() -> None:
    assert str(Reference(("nodes", "a", "output", 0, "b"))) == "nodes.a.output[0].b"
    assert str(Reference(("inputs",))) == "inputs"
