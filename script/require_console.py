"""A hook of the wheel: a wheel without the built console is refused, because its users have no Node to build it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RequireConsole(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del build_data
        page = Path(self.root) / "src/geomill/console_files/index.html"
        if version == "standard" and not page.exists():
            raise FileNotFoundError("the console is not built; run script/console, then build the wheel")
