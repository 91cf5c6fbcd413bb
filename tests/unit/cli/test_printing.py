"""Tables: whole on any terminal, and one line for each row elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

PROGRAM = """
from geomill.cli.printing import print_table
rows = [("a" * 32, "pending_review", ["floods", "jakarta"], 3), ("b" * 32, "[bold]", "words " * 6, None)]
print_table(("asset", "approval", "identifiers", "revision"), rows, empty="nothing")
"""


def on_terminal(width: int) -> str:
    """Run the program on a terminal of a width, and return what it prints."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "COLUMNS": str(width), "TERM": "xterm"}
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=theirs, env=environ) as process:
        os.close(theirs)
        printed = b""
        try:
            while part := os.read(ours, 65536):
                printed += part
        except OSError:  # the program has ended
            pass
        finally:
            os.close(ours)
    assert process.returncode == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", printed.decode()).replace("\r\n", "\n")


def test_elsewhere_a_row_is_a_line() -> None:
    printed = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == [
        f"{'asset':32}  approval        identifiers                          revision",
        f"{'a' * 32}  pending_review  floods, jakarta                      3",
        f"{'b' * 32}  [bold]          words words words words words words",
    ]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_cuts_no_text(width: int) -> None:
    printed = on_terminal(width)
    assert "…" not in printed
    for word in ("a" * 32, "b" * 32, "approval", "identifiers", "revision", "pending_review", "floods,", "[bold]"):
        assert word in printed


def test_a_terminal_wraps_at_words() -> None:
    lines = on_terminal(80).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) > 3


def test_a_wide_terminal_has_a_line_for_each_row() -> None:
    assert len(on_terminal(200).splitlines()) == 3


def test_no_rows() -> None:
    program = "from geomill.cli.printing import print_table; print_table(('asset',), [], empty='There are no assets.')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "There are no assets.\n"
