"""Parameters of a stage job from the command line."""

from __future__ import annotations

from typing import Any

import pytest

from geomill.cli.stages import _from_options
from geomill.errors import InputsError
from geomill.stages.registry import load_stage_jobs

SCHEMAS = {name: job.controller.parameters_schema() for name, job in load_stage_jobs().items()}


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("greetings=5", {"greetings": 5}),
        ("name=5", {"name": "5"}),
        ("name=a=b", {"name": "a=b"}),
        ("greetings=many", {"greetings": "many"}),  # refused where parameters are checked, with the field's name
    ],
)
def test_a_value_is_json_unless_it_is_a_text(option: str, expected: dict[str, Any]) -> None:
    assert _from_options(SCHEMAS["hello_world"], [option]) == expected


def test_values_that_may_be_null() -> None:
    params = _from_options(SCHEMAS["process_large_raster"], ["tile_size=null", "datetime=null", 'band_names=["Red"]'])
    assert params == {"tile_size": None, "datetime": None, "band_names": ["Red"]}


def test_an_option_without_a_value() -> None:
    with pytest.raises(InputsError, match="has no '='"):
        _from_options(SCHEMAS["hello_world"], ["name"])
