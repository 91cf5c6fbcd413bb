from __future__ import annotations

import logging

import pytest

from geomill.worker.tasklog import TaskLogger


@pytest.fixture
def log_lines() -> list[tuple[int, str]]:
    return []


@pytest.fixture
def logger(log_lines: list[tuple[int, str]]) -> TaskLogger:
    quiet = logging.getLogger("tests.quiet")
    quiet.setLevel(logging.CRITICAL)
    return TaskLogger(quiet, lambda level, text: log_lines.append((level, text)))


def test_info_and_above_reach_the_sink_whatever_is_configured(
    logger: TaskLogger, log_lines: list[tuple[int, str]]
) -> None:
    logger.debug("no")
    logger.info("a %s %d", "b", 3)
    logger.warning("w")
    assert log_lines == [(logging.INFO, "a b 3"), (logging.WARNING, "w")]


def test_an_exception_comes_with_its_traceback(logger: TaskLogger, log_lines: list[tuple[int, str]]) -> None:
    try:
        raise ValueError("bad")  # noqa: TRY301
    except ValueError as error:
        logger.exception("it broke")
        logger.error("again", exc_info=error)  # noqa: TRY400  an error given by hand
    for (_, text), first in zip(log_lines, ("it broke", "again"), strict=True):
        assert text.startswith(first + "\nTraceback")
        assert text.endswith("ValueError: bad")


def test_arguments_that_do_not_fit_do_not_fail_the_handler(
    logger: TaskLogger, log_lines: list[tuple[int, str]]
) -> None:
    logger.info("%d", "x")
    assert log_lines == [(logging.INFO, "%d")]
