"""The output of handlers reaches the log of their task."""

from __future__ import annotations

import asyncio
import io
import logging
import sys
from contextlib import redirect_stdout

import pytest

from geomill.domain.engine.log import LONGEST_LINE
from geomill.sdk.printing import all_printed_to, printed_to


def messages(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == name]


async def test_tasks_that_run_at_once_do_not_mix(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def task(name: str) -> None:
        with printed_to(logging.getLogger(name)):
            for number in range(3):
                print(name, end=" ")
                await asyncio.sleep(0)
                await asyncio.to_thread(print, number)

    with redirect_stdout(io.StringIO()) as standard_output:
        await asyncio.gather(task("a"), task("b"))
        print("outside")
    for name in "ab":
        assert messages(caplog, name) == [f"{name} {number}" for number in range(3)]
    assert standard_output.getvalue() == "outside\n"


def test_an_endless_line_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with printed_to(logging.getLogger("long")):
        for _ in range(LONGEST_LINE):
            print("xx", end="")
    assert [len(line) for line in messages(caplog, "long")] == [LONGEST_LINE, LONGEST_LINE]


def test_empty_lines_say_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with all_printed_to(logging.getLogger("empty")):
        print()
        print("  ")
        print("text\r\n")
    assert messages(caplog, "empty") == ["text"]


def test_what_is_behind_can_still_be_reached() -> None:
    with redirect_stdout(io.StringIO("behind")), printed_to(logging.getLogger("x")):
        assert sys.stdout.getvalue() == "behind"  # type: ignore[attr-defined]  # a StringIO
        assert not sys.stdout.isatty()
        sys.stdout.flush()


def test_it_goes_without_a_word_when_the_output_behind_is_closed(recwarn: pytest.WarningsRecorder) -> None:
    behind = io.StringIO()
    with redirect_stdout(behind):
        with printed_to(logging.getLogger("x")):
            output = sys.stdout
        behind.close()
    output.close()
    output.__del__()
    assert not recwarn.list
