from __future__ import annotations

import re

import pytest

from geomill.errors import DatabaseUnfit
from geomill.store import pgstac


def test_a_database_without_it_gets_the_release_that_we_come_with() -> None:
    (step,) = pgstac.steps(None)
    assert step.summary == f"install pgstac {pgstac.wanted()}"
    assert step.script is not None
    assert "RESET ROLE; RESET search_path;" in step.script
    assert len("".join(step.statements)) < 200  # it is not shown whole


def test_the_same_and_a_newer_one_are_left_alone() -> None:
    major, minor, patch = map(int, pgstac.wanted().split("."))
    assert pgstac.steps(pgstac.wanted()) == ()
    assert pgstac.steps(f"{major}.{minor}.{patch + 1}") == ()
    assert pgstac.steps(f"{major + 1}.0.0") == ()


def test_an_older_one_is_brought_up_step_by_step() -> None:
    steps = pgstac.steps("0.9.8")
    assert steps[0].summary == "bring pgstac to 0.9.9"
    assert steps[-1].summary == f"bring pgstac to {pgstac.wanted()}"
    for step in steps:
        assert step.script is not None
        assert not step.script.lstrip().upper().startswith("BEGIN;")
        assert "run_queued_queries_intransaction" in step.script


def test_one_that_nobody_knows_is_refused() -> None:
    with pytest.raises(DatabaseUnfit, match=r"0\.0\.1, from which no upgrade"):
        pgstac.steps("0.0.1")


@pytest.mark.parametrize("current", [None, "0.9.0", "0.9.12"])
def test_the_files_touch_no_role_themselves(current: str | None) -> None:
    """Statements on roles would fail without the right to them, even if nothing is left to do. Our own block does what
    is missing."""
    for step in pgstac.steps(current):
        assert step.script is not None
        preamble, _, rest = step.script.partition("$roles$;")
        assert "CREATE ROLE" in preamble
        assert not re.search(r"(CREATE|ALTER) ROLE|^\s*GRANT pgstac_\w+ TO", rest, re.IGNORECASE | re.MULTILINE)
