"""Log lines: whole, with their ids, and without secrets."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from geomill.telemetry.logging import configure, formatter, resolve, without_secrets


@pytest.fixture(autouse=True)
def root() -> Iterator[None]:
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    yield
    logger.handlers[:], logger.level = handlers, level


def log_text(log_format: str, *arguments: object, **options: object) -> str:
    stream = io.StringIO()
    configure(log_format, "info", stream)  # type: ignore[arg-type]
    logging.getLogger("geomill.test").warning(*arguments, **options)  # type: ignore[arg-type]
    return stream.getvalue()


def test_json_has_action_and_ids() -> None:
    line = json.loads(log_text("json", "job %s moved", 7, extra={"action": "claim", "job_id": "j"}))
    assert line | {"level": "warning", "logger": "geomill.test", "message": "job 7 moved"} == line
    assert line | {"action": "claim", "job_id": "j"} == line
    assert line["ts"].endswith("+00:00")


def test_a_line_is_one_line_also_with_a_stack() -> None:
    stream = io.StringIO()
    configure("json", "info", stream)
    try:
        int("two\nlines")
    except ValueError:
        logging.getLogger("x").exception("failed")
    (line,) = stream.getvalue().splitlines()
    assert "ValueError: invalid literal" in json.loads(line)["exception"]


def test_what_cannot_be_json_is_text() -> None:
    assert json.loads(log_text("json", "x", extra={"path": io.StringIO}))["path"].startswith("<class")


def test_text_for_people() -> None:
    line = log_text("text", "hello", extra={"job_id": "j"})
    assert "warning hello job_id=j" in line
    assert "\x1b" not in line
    record = logging.LogRecord("x", logging.ERROR, "", 0, "bad", None, None)
    assert "\x1b[31merror" in formatter("text", colour=True).format(record)


def test_auto_is_json_where_nobody_reads() -> None:
    assert resolve("auto", io.StringIO()) == "json"
    assert resolve("text", io.StringIO()) == "text"
    assert resolve("json", sys.stderr) == "json"


def test_the_level_counts() -> None:
    stream = io.StringIO()
    configure("text", "error", stream)
    logging.getLogger("x").warning("quiet")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("no connection to postgresql://me:s3cret@host/maps", "s3cret"),
        ("host=x password=s3cret dbname=y", "s3cret"),
        ("{'api_key': 's3cret'}", "s3cret"),
        ("Authorization: Bearer s3cret", "s3cret"),
        ('{"password": "s3cret"}', "s3cret"),
        ("x-api-key: s3cret", "s3cret"),
        (f"the header was gm_0123456789ab_{'0f' * 32}, they say", "0f0f"),
        ("got eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl", "eyJzdWIi"),
    ],
)
def test_secrets_are_struck_out(text: str, secret: str) -> None:
    assert secret not in without_secrets(text)
    assert secret not in log_text("json", "%s", text)
    assert secret not in log_text("text", "m", extra={"detail": text})


def test_what_is_no_secret_stays() -> None:
    assert without_secrets("http://127.0.0.1:8000/health at 10:20:30") == "http://127.0.0.1:8000/health at 10:20:30"
