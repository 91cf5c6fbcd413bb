"""The error tree."""

from __future__ import annotations

import time

import pytest

from geomill import errors
from geomill.errors import (
    DestructiveMigration,
    GeomillError,
    IllegalTransition,
    InputError,
    NotFoundError,
    Problem,
    SettingsError,
    nearest,
)
from geomill.sdk import HandlerError


def tree(root: type[GeomillError]) -> list[type[GeomillError]]:
    return [root, *(error_class for child in root.__subclasses__() for error_class in tree(child))]


GEOMILL_ERRORS = [error_class for error_class in tree(GeomillError) if error_class.__module__ == errors.__name__]


def test_a_message_is_followed_by_its_remedy() -> None:
    assert str(NotFoundError("there is no job 'x'")) == "there is no job 'x'"
    error = NotFoundError("there is no job 'x'", remedy="look at `geomill jobs`")
    assert str(error) == "there is no job 'x'; look at `geomill jobs`"
    assert (error.message, error.remedy) == ("there is no job 'x'", "look at `geomill jobs`")


def test_every_error_is_drawn_at_the_top_and_has_a_code_of_its_own() -> None:
    assert errors.__doc__ is not None
    assert [
        error_class.__name__
        for error_class in [*GEOMILL_ERRORS, HandlerError]
        if error_class.__name__ not in errors.__doc__
    ] == []
    assert len({error_class.code for error_class in GEOMILL_ERRORS}) == len(GEOMILL_ERRORS)


def test_the_caller_s_mistakes_have_an_exit_code_of_their_own() -> None:
    assert {error_class.exit_code for error_class in tree(InputError)} == {2}
    assert NotFoundError.exit_code == 2
    assert GeomillError.exit_code == 1


def test_input_errors_carry_every_problem() -> None:
    problems = [Problem("a", "is wrong"), Problem("b", "is missing")]
    assert SettingsError("two are wrong", problems=iter(problems)).problems == tuple(problems)
    assert SettingsError("nothing is known").problems == ()


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("nodes.a", "is wrong"), "nodes.a: is wrong"),
        (Problem("", "is empty"), "is empty"),
        (Problem("a", "is wrong", "use b"), "a: is wrong (use b)"),
        (Problem("a", "is wrong", "use b", "w.yaml", 7), "w.yaml:7: a: is wrong (use b)"),
    ],
)
def test_a_problem_says_where_what_and_what_to_do(problem: Problem, text: str) -> None:
    assert str(problem) == text


def test_an_illegal_transition_names_both_states() -> None:
    error = IllegalTransition("job", "failed", "running", [])
    assert str(error) == "a job cannot go from failed to running; after failed comes nothing, because it is final"
    assert (error.machine, error.source, error.target) == ("job", "failed", "running")


def test_a_destructive_migration_carries_the_refused_sql() -> None:
    assert DestructiveMigration("no", statements=["DROP TABLE a"]).statements == ("DROP TABLE a",)


@pytest.mark.parametrize(
    ("name", "words", "hint"),
    [
        ("ecco", ["sleep", "echo"], "did you mean 'echo'?"),
        ("ECHO", ["sleep", "echo"], "did you mean 'echo'?"),
        ("zzz", ["b", "a"], "use one of: a, b"),
        (
            "zzz",
            [f"n{number:02}" for number in range(13)],
            "use one of: " + ", ".join(f"n{n:02}" for n in range(12)) + ", …",
        ),
        ("zzz", [], "there are none"),
    ],
)
def test_the_nearest_known_word_is_named(name: str, words: list[str], hint: str) -> None:
    assert nearest(name, iter(words)) == hint


def test_a_hint_among_thousands_of_names_is_found_by_its_beginning_and_costs_little() -> None:
    names = [f"node_number_{number:05}_{'x' * 40}" for number in range(5000)]
    begun = time.process_time()
    for _ in range(20):
        assert nearest(f"node_number_04711_{'x' * 39}", names) == f"did you mean '{names[4711]}'?"
    assert time.process_time() - begun < 4
