"""The map of the code is true: ARCHITECTURE.md, the glossary, the promises and the decisions name things that exist."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from geomill.domain.tables import EXTERNAL_TABLES, TABLES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "geomill"
TESTS = ROOT / "tests"
DECISIONS = sorted((DOCS / "decisions").glob("[0-9]*.md"))
PAGES = [
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(DOCS.glob("*.md")),
    *sorted((DOCS / "explanation").glob("*.md")),
    *DECISIONS,
]

CODE = re.compile(r"`([\w./-]+\.(?:py|sql|yaml|md|json))(?:::(\w+))?`")


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def locate(path: str) -> Path | None:
    """Find a file by its path from the root or from `src/geomill`, or by its bare name in the source or the tests."""
    for folder in (ROOT, SOURCE):
        if (folder / path).exists():
            return folder / path
    return next(chain(SOURCE.rglob(path), TESTS.rglob(path)), None) if "/" not in path else None


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_code_file_that_a_page_names_exists(page: Path) -> None:
    lacking = [path for path, _ in CODE.findall(read(page)) if locate(path) is None]
    assert lacking == []


# ARCHITECTURE.md


def definitions(text: str) -> set[str]:
    """The functions, classes and SQL statements that a file defines."""
    return set(re.findall(r"^\s*(?:async def|def|class|-- name:) (\w+)", text, re.MULTILINE))


def test_architecture_is_read_in_ten_minutes() -> None:
    lines = read(ROOT / "ARCHITECTURE.md").splitlines()
    assert len(lines) <= 200
    assert [number for number, line in enumerate(lines, 1) if len(line) > 120] == []


def test_the_walk_names_functions_that_exist() -> None:
    walk = read(ROOT / "ARCHITECTURE.md").split("## The walk")[1].split("\n## ")[0]
    hops = re.findall(r"^\d+\. \*\*", walk, re.MULTILINE)
    assert 10 <= len(hops) <= 20
    for path, name in CODE.findall(walk):
        file = locate(path)
        assert file is not None, path
        assert not name or name in definitions(read(file)), f"{path} has no {name}"


def test_the_layers_are_those_that_the_linter_checks() -> None:
    project = tomllib.loads(read(ROOT / "pyproject.toml"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["containers"] == ["geomill"])
    drawn = read(ROOT / "ARCHITECTURE.md").split("## Layers")[1].split("```text\n")[1].split("```")[0].splitlines()
    assert [re.split(r"\s{2,}", line)[0] for line in drawn] == layers


def test_every_table_has_a_row_with_its_writer() -> None:
    section = read(ROOT / "ARCHITECTURE.md").split("## Tables")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE)
    tables = (f"{table.__sql_schema__}.{table.__sql_table__}" for table in (*TABLES, *EXTERNAL_TABLES))
    assert sorted(listed) == sorted({name.removeprefix("dagapp.") for name in tables})


# Promises


def promises() -> list[list[str]]:
    rows = [line for line in read(DOCS / "promises.md").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return [row for row in cells if row[0] != "promise" and set(row[0]) != {"-"}]


def test_every_promise_has_a_test_that_exists() -> None:
    assert len(promises()) >= 62
    for promise, _, tests in promises():
        paths = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", tests)
        assert paths, f"no test holds: {promise}"
        for path, function in paths:
            assert (ROOT / path).exists(), f"{promise}: {path} is not there"
            if function:
                assert f"def {function}(" in read(ROOT / path), f"{promise}: {path} has no {function}"


# Decisions


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_context_decision_cost_and_code(page: Path) -> None:
    text = read(page)
    assert text.startswith(f"# {page.name[:3]}. ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Cost", "Code"]
    assert re.search(r"`src/geomill/", text.split("## Code")[1]), "name the code that carries the decision"
    assert len(text.split()) < 350, "a decision is one short page"


def test_decisions_are_numbered_without_gaps_and_listed() -> None:
    assert [int(page.name[:3]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    index = read(DOCS / "decisions" / "README.md")
    assert [page.name for page in DECISIONS if f"({page.name})" not in index] == []


# The glossary


def glossary() -> list[list[str]]:
    rows = [line for line in read(DOCS / "glossary.md").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return [row for row in cells if row[0] != "word" and set(row[0]) != {"-"}]


def table_names() -> set[str]:
    tables = {f"{table.__sql_schema__}.{table.__sql_table__}" for table in (*TABLES, *EXTERNAL_TABLES)}
    return tables | {name.removeprefix("dagapp.") for name in tables}


@pytest.mark.parametrize("entry", glossary(), ids=lambda entry: entry[0])
def test_a_glossary_entry_is_short_and_names_a_file_or_table_that_exists(entry: list[str]) -> None:
    _, meaning, home = entry
    assert meaning.endswith(".")
    assert len(meaning.split()) <= 45, "one or two sentences"
    places = re.findall(r"`([^`]+)`", home)
    assert places
    for place in places:
        assert place in table_names() or locate(place) is not None, f"{place} is neither a table nor a file"


def test_every_word_stands_once_in_the_glossary_and_in_order() -> None:
    words = [word for word, _, _ in glossary()]
    assert sorted(words) == sorted(set(words))
    for section in read(DOCS / "glossary.md").split("\n## ")[1:]:
        listed = re.findall(r"^\| `?(\w[^|`]*?)`? \|", section, re.MULTILINE)[1:]
        assert listed == sorted(listed, key=str.lower), section.splitlines()[0]
