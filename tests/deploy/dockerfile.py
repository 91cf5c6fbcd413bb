"""Reads the Dockerfile: its stages, with instructions whose continued lines are joined."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = ROOT / "Dockerfile"


@dataclass(frozen=True)
class Instruction:
    word: str
    rest: str


def stages(text: str) -> dict[str, list[Instruction]]:
    """Return the instructions of each stage. The last stage has the name `image`."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    instructions = [Instruction(*line.split(" ", 1)) for line in joined.splitlines() if line.strip()]
    named: dict[str, list[Instruction]] = {}
    for instruction in instructions:
        if instruction.word == "FROM":
            _, _, name = instruction.rest.partition(" AS ")
            named[name or "image"] = []
        named[next(reversed(named))].append(instruction)
    return named


def of(stage: str, word: str) -> list[str]:
    """Return the texts of one kind of instruction of a stage of our Dockerfile."""
    return [i.rest for i in stages(FILE.read_text(encoding="utf-8"))[stage] if i.word == word]
