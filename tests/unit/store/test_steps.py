"""Files of numbered steps: their names, headers and order."""

from __future__ import annotations

import pytest

from geomill.domain.entity import Entity
from geomill.domain.tables import EXTERNAL_TABLES, TABLES
from geomill.store.steps import MigrationStep, Moment, StepDatabase, shipped_steps, steps_for

TEXT = "-- rename the column note\n-- run: before\n-- database: inside\nALTER TABLE a RENAME COLUMN note TO remark;\n"


def test_a_step_is_read_from_its_file() -> None:
    step = MigrationStep.parse("0007-rename-note.sql", TEXT)
    assert (step.number, step.title) == (7, "rename the column note")
    assert (step.moment, step.database) == (Moment.BEFORE, StepDatabase.INSIDE)
    assert step.statements == "ALTER TABLE a RENAME COLUMN note TO remark;"
    assert step.summary == "run step 7: rename the column note"


@pytest.mark.parametrize("name", ["7-rename.sql", "0000-rename.sql", "0007_rename.sql", "0007-Rename.sql", "0007.sql"])
def test_a_file_that_is_called_otherwise_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"called like 0007"):
        MigrationStep.parse(name, TEXT)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("run: before", "run: sometimes"),
        TEXT.replace("database: inside", "database: everywhere"),
        TEXT.replace("-- run: before\n", ""),
        TEXT.partition("ALTER")[0],
        TEXT.partition("ALTER")[0] + "\n \n",
        "",
    ],
)
def test_a_step_without_its_header_or_its_statements_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a step begins with its title"):
        MigrationStep.parse("0007-rename.sql", text)


def test_the_steps_of_this_release_are_sound_and_each_is_for_a_database() -> None:
    of_each = {*steps_for(TABLES, outside=False), *steps_for(EXTERNAL_TABLES, outside=True)}
    assert of_each == set(shipped_steps())
    assert steps_for((Entity,), outside=False) == ()
