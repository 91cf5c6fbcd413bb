"""Remedies in the words of their reader."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from geomill.remedies import REMEDIES, Channel, Remedy, worded

ROOT = Path(__file__).parents[2]
SHELL_ONLY = ("cli", "embedded", "backup", "client")
"""Packages whose errors reach people at a shell, or who write Python."""


@pytest.mark.parametrize("remedy", REMEDIES)
def test_a_remedy_speaks_the_language_of_its_channel(remedy: Remedy) -> None:
    for form in (remedy.http, remedy.shell):
        assert worded(f"no; {form}, or wait", Channel.HTTP) == f"no; {remedy.http}, or wait"
        assert worded(f"no; {form}, or wait", Channel.SHELL) == f"no; {remedy.shell}, or wait"
    assert "geomill " not in remedy.http
    assert not {"POST", "GET"} & set(remedy.shell.split())


def test_remedies_name_commands_and_routes_that_exist() -> None:
    commands, routes = (reference(name) for name in ("cli.md", "http-api.md"))
    for remedy in REMEDIES:
        for command in re.findall(r"'(geomill [^']*)'", remedy.shell):
            assert f"`{command}" in commands or f"### {command}" in commands, command
        for route in re.findall(r"(?:GET|POST) /\S+", remedy.http):
            assert f"`{route}`" in routes, route


def reference(name: str) -> str:
    return (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")


def test_a_remedy_that_names_a_route_or_a_command_is_worded_for_both_channels() -> None:
    """The gateway's errors reach people at a shell through the client, and those of other packages reach both."""
    plain = [
        (place, text) for place, text in remedies_in_source() if re.search(r"/api/|\bgeomill [a-z]|(^| )--[a-z]", text)
    ]
    assert plain == []


def remedies_in_source() -> Iterator[tuple[str, str]]:
    """Yield the texts that are passed as `remedy=`, outside the packages for the shell."""
    package = ROOT / "src" / "geomill"
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] in SHELL_ONLY:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "remedy":
                for part in ast.walk(node.value):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield f"{path.relative_to(ROOT)}:{node.value.lineno}", part.value
