from __future__ import annotations

import pytest

from geomill.domain.engine.starting import Starter, require_free_names, require_starter
from geomill.errors import Forbidden, InputsError

PARTNERS, OPERATORS, GEOMILL = Starter


@pytest.mark.parametrize("started_by", Starter)
@pytest.mark.parametrize("starter", Starter)
def test_each_circle_starts_what_is_meant_for_it_and_for_those_outside_of_it(started_by: Starter, starter: Starter):
    allowed = {(PARTNERS, PARTNERS), (PARTNERS, OPERATORS), (OPERATORS, OPERATORS)}
    allowed |= {(circle, GEOMILL) for circle in Starter}
    if (started_by, starter) in allowed:
        require_starter("x", started_by, starter)
    else:
        with pytest.raises(Forbidden, match=f"the workflow 'x' is started by {started_by.value} only"):
            require_starter("x", started_by, starter)


@pytest.mark.parametrize(
    "inputs",
    [
        {"blob_prefix": "a/b/_r1"},
        {"blob_prefix": "_r1"},
        {"blob_prefix": "a/_r12/deeper"},
        {"output_folder": "a/_r1"},
        {"table_name": "roads_r1"},
        {"table_name": "roads_r12_points"},
    ],
)
def test_names_of_revisions_are_for_assets(inputs: dict[str, str]):
    with pytest.raises(InputsError, match="is the name of an asset's revision") as refused:
        require_free_names(inputs)
    assert [problem.where for problem in refused.value.problems] == list(inputs)


@pytest.mark.parametrize(
    "inputs",
    [{}, {"blob_prefix": "a/r1/_rx"}, {"blob_prefix": None}, {"table_name": "a_river"}, {"other": "a/_r1"}],
)
def test_other_names_are_free(inputs: dict[str, str]):
    require_free_names(inputs)
