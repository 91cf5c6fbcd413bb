"""A serving process that takes too much memory ends."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from geomill.cli.memory import EXIT_CODE

linux = pytest.mark.skipif(sys.platform != "linux", reason="there is no limit elsewhere")


def run(code: str) -> subprocess.CompletedProcess[str]:
    preparation = "import logging, time; from geomill.cli.memory import limit_memory; logging.basicConfig()\n"
    arguments = [sys.executable, "-c", preparation + code]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)


@linux
def test_what_is_used_has_a_limit() -> None:
    ended = run("limit_memory(100); held = bytearray(b'x') * 300_000_000; time.sleep(50)")
    assert ended.returncode == EXIT_CODE
    assert "it exits so that its supervisor restarts it" in ended.stderr


@linux
def test_what_is_reserved_has_a_limit_that_needs_no_look() -> None:
    ended = run("limit_memory(100)\ntry:\n    bytearray(2_000_000_000)\nexcept MemoryError:\n    print('refused')")
    assert (ended.returncode, ended.stdout) == (0, "refused\n")


@linux
def test_what_stays_below_goes_on() -> None:
    ended = run("limit_memory(500); held = bytearray(b'x') * 100_000_000; time.sleep(0.5); print('well')")
    assert (ended.returncode, ended.stdout) == (0, "well\n")


def test_a_limit_that_is_set_already_is_not_raised() -> None:
    hard = 1 << 30
    ended = run(
        f"import resource; resource.setrlimit(resource.RLIMIT_DATA, ({hard}, {hard})); limit_memory(100_000);"
        " print(resource.getrlimit(resource.RLIMIT_DATA)[0])"
    )
    assert ended.stdout == f"{hard}\n"
    assert resource.getrlimit(resource.RLIMIT_DATA)[1] != hard
