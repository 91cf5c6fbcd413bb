"""The declared dependencies: the page explains each of them, and the modules of shared packages belong to them.

deptry compares all other imports with the declared dependencies. It sees a package that several distributions share,
such as `stac_fastapi` or `titiler`, as one: it would not notice `titiler.mosaic` missing or unused.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SHARED = ("stac_fastapi", "titiler")
"""Packages whose modules come from several distributions, which are named after them: `stac_fastapi.types`."""


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def run_time() -> list[str]:
    """Returns the distributions that the client, the server or one of its extras needs."""
    declared = project()["project"]
    extras = declared["optional-dependencies"].values()
    return names([*declared["dependencies"], *(name for extra in extras for name in extra)])


def names(requirements: Iterable[str]) -> list[str]:
    return [re.split(r"[\[<>=!~; ]", requirement)[0] for requirement in requirements]


def explained(section: str) -> list[str]:
    """Returns the packages in the first column of the table below a heading of the page."""
    text = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", text.split(f"## {section}\n")[1].split("\n## ")[0], re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", re.sub(r"\(.*?\)", "", row))]


def test_the_page_explains_exactly_the_declared_dependencies() -> None:
    assert sorted(explained("At run time")) == sorted(run_time())
    assert sorted(explained("For development")) == sorted(names(project()["dependency-groups"]["dev"]))


def imported_modules() -> Iterator[str]:
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                yield node.module


def test_each_part_of_a_shared_package_is_declared_and_imported() -> None:
    imported = {".".join(name.split(".")[:2]) for name in imported_modules() if name.split(".")[0] in SHARED}
    declared = [name for name in run_time() if name.replace("-", "_").startswith(SHARED)]
    assert sorted(imported) == sorted(name.replace("-", "_") for name in declared)
    for name in declared:
        folder = name.replace("-", "_").replace(".", "/")
        assert any(str(file).startswith(f"{folder}/") for file in distribution(name).files or ())
