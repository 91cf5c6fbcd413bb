"""A checkout of geomill with its environment, from which roles are started."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Release:
    root: Path
    programs: Path | None = None
    """The folder of `python` and `geomill`; by default that of the checkout's own environment."""

    def program(self, name: str) -> str:
        return str((self.programs or self.root / ".venv/bin") / name)

    @property
    def workflows(self) -> Path:
        return self.root / "tests/chaos/workflows"


CURRENT = Release(ROOT, Path(sys.executable).parent)
"""The checkout of this test."""
