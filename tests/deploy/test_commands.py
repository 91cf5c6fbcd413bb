"""The question to the command line can be answered with no, so that a yes means something."""

from __future__ import annotations

import pytest

from tests.deploy.commands import refusal


@pytest.mark.parametrize(
    "words",
    [
        ["gatewy"],
        ["gateway", "--prt", "8000"],
        ["gateway", "--port", "many"],
        ["serve", "--zone", "outer"],
        ["db", "migrat"],
        ["worker", "--concurrency", "0"],
    ],
    ids=" ".join,
)
def test_wrong_words_are_refused(words: list[str]) -> None:
    assert refusal(words)


@pytest.mark.parametrize(
    "words", [["--data", "/var/lib/geomill", "up"], ["db", "migrate"], ["orchestrator"]], ids=" ".join
)
def test_right_words_are_accepted(words: list[str]) -> None:
    assert refusal(words) is None
