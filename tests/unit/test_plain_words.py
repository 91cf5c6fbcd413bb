"""Docstrings and descriptions have a subject: none begins with a bare "What", "Whoever" or "Of"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
BARE = re.compile(r"(What|Whoever|Whatever|Of|Not that)\b")


def texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield docstrings, strings below an assignment, and descriptions of fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            candidate: ast.expr = node.value
        elif isinstance(node, ast.keyword) and node.arg in ("description", "help"):
            candidate = node.value
        else:
            continue
        if isinstance(candidate, ast.Constant) and isinstance(candidate.value, str):
            yield candidate


def bare(source: str) -> list[tuple[int, str]]:
    return [(text.lineno, str(text.value)) for text in texts(ast.parse(source)) if BARE.match(str(text.value).strip())]


def test_texts_have_a_subject() -> None:
    by_path = {str(path.relative_to(ROOT)): bare(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {path: texts for path, texts in by_path.items() if texts} == {}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('"""What is inside a file."""', [1]),
        ('most = 5\n"""Of runs."""', [2]),
        ('x = Field(description="Whoever asks")', [1]),
        ('"""The contents of a file. What it lacks is left out."""', []),
        ('"""Often it is empty."""', []),
    ],
)
def test_bare_beginnings_are_recognised(source: str, lines: list[int]) -> None:
    assert [line for line, _ in bare(source)] == lines
