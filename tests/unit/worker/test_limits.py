from __future__ import annotations

import os
import sys

import pytest

from geomill.worker.children.limits import MEGABYTE, memory_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_memory_is_what_is_used() -> None:
    before = memory_of(os.getpid())
    ballast = bytearray(os.urandom(1024) * 30 * 1024)
    assert memory_of(os.getpid()) - before > 25 * MEGABYTE
    assert len(ballast) == 30 * MEGABYTE


def test_nobody_uses_nothing() -> None:
    assert memory_of(2**22 + 1) == 0
