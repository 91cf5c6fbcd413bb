"""Writes the synchronous client from the asynchronous one, for `script/client`, which formats it afterwards.

The two differ in a few words. A test fails if the written files are stale.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
SOURCE, TARGET = HERE / "asynchronous", HERE / "synchronous"
NOTICE = "# Written by script/client from client/asynchronous. Change that, not this.\n"
WORDS: tuple[tuple[str, str], ...] = (
    ("The source of both clients", "The synchronous client, written from the asynchronous one"),
    (r"import asyncio", "import time"),
    (r"asyncio\.sleep", "time.sleep"),
    (r"asyncio\.to_thread\((\w+), ", r"\1("),
    (r"  # noqa: ASYNC.*", ""),
    (r"client\.asynchronous", "client.synchronous"),
    (r"\baconnect_sse\b", "connect_sse"),
    (r"\baiter_sse\b", "iter_sse"),
    (r"\baread\b", "read"),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"\baclose\b", "close"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsync(?=[A-Z])", ""),
)


def translated(text: str) -> str:
    for pattern, replacement in WORDS:
        text = re.sub(pattern, replacement, text)
    return NOTICE + text


def files() -> dict[str, str]:
    """Return the files of the synchronous client: name and text."""
    return {path.name: translated(path.read_text()) for path in sorted(SOURCE.glob("*.py"))}


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
