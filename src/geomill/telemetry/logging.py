"""Log lines: JSON for machines, coloured text for a terminal. Texts that look like a password are struck out.

A line carries an `action` and the ids that matter, given as `extra={"action": "restart", "job_id": …}`.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

LogFormat = Literal["auto", "json", "text"]
LogLevel = Literal["debug", "info", "warning", "error"]

_SECRETS = (
    (re.compile(r"(\w+://[^\s:/@]*):[^\s/@]+@"), r"\1:***@"),
    (re.compile(r"(?i)\b((?:password|secret|token|api[_-]?key)[\\\"']*\s*[=:]\s*[\\\"']*)[^\s\\\"'&,;]+"), r"\1***"),
    (re.compile(r"(?i)\b(bearer )\S+"), r"\1***"),
    (re.compile(r"\b(gm_[0-9a-z]{12}_)[0-9a-f]+"), r"\1***"),  # an API key
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"), "***"),  # a token
)
_PLAIN = frozenset(vars(logging.LogRecord("", 0, "", 0, "", None, None))) | {
    "message",
    "asctime",
    "taskName",
    "color_message",  # uvicorn's
}
_COLOURS = {"DEBUG": "\x1b[2m", "INFO": "", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31m"}
_RESET = "\x1b[0m"


def configure(log_format: LogFormat, level: LogLevel, stream: TextIO | None = None) -> None:
    """Let every logger of the process write to `stream`. `auto` is text on a terminal and JSON elsewhere."""
    target = stream or sys.stderr
    handler = logging.StreamHandler(target)
    handler.setFormatter(formatter(resolve(log_format, target), colour=target.isatty()))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("httpx").setLevel(logging.WARNING)


def resolve(log_format: LogFormat, stream: TextIO) -> Literal["json", "text"]:
    if log_format == "auto":
        return "text" if stream.isatty() else "json"
    return log_format


def formatter(log_format: Literal["json", "text"], *, colour: bool = False) -> logging.Formatter:
    return JsonFormatter() if log_format == "json" else TextFormatter(colour=colour)


def without_secrets(text: str) -> str:
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields that the caller passed as `extra`."""
    return {name: value for name, value in vars(record).items() if name not in _PLAIN}


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extra(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return without_secrets(json.dumps(line, ensure_ascii=False, default=str))


class TextFormatter(logging.Formatter):
    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        begin, end = (_COLOURS.get(record.levelname, ""), _RESET) if self._colour else ("", "")
        moment = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        fields = "".join(f" {name}={value}" for name, value in _extra(record).items())
        text = f"{moment} {begin}{record.levelname.lower():<7}{end} {record.getMessage()}{fields}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return without_secrets(text)
