"""Failures that are not the handler's own doing have codes of their own."""

from __future__ import annotations

import errno
import os

import psycopg
import pytest

from geomill.sdk.causes import passing_code


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "no_space"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), "no_space"),
        (RuntimeError("x.tif: write of 512 bytes failed: No space left on device"), "no_space"),
        (RuntimeError("TIFFAppendToStrip:Write error at scanline 522"), "no_space"),
        (caused(ValueError("could not write"), OSError(errno.ENOSPC, "full")), "no_space"),
        (psycopg.errors.DiskFull("could not extend file"), "no_space"),
        (psycopg.errors.ReadOnlySqlTransaction("cannot execute INSERT"), "database_unreachable"),
        (psycopg.errors.AdminShutdown("terminating connection"), "database_unreachable"),
        (psycopg.OperationalError("the connection is lost"), "database_unreachable"),
        (psycopg.errors.UniqueViolation("duplicate key"), None),
        (psycopg.errors.QueryCanceled("statement timeout"), None),
        (OSError(errno.ENOENT, "there is no such file"), None),
        (ValueError("a bug"), None),
    ],
)
def test_codes(error: Exception, code: str | None) -> None:
    assert passing_code(error) == code


def test_causes_that_go_in_a_circle_end() -> None:
    first, second = ValueError("1"), ValueError("2")
    first.__cause__, second.__cause__ = second, first
    assert passing_code(first) is None
