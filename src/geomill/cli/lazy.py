"""Commands whose modules are imported when they are run, and not before: `geomill --help` needs none of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group


class Later(TyperCommand):
    """Stands for a command where commands are listed: its name, and the help that it has itself."""

    def __init__(self, name: str, help: str, *modules: str, attribute: str = "app") -> None:  # noqa: A002  Typer's word
        """`modules` are all imported; the first one has the group, or the function, of that name."""
        super().__init__(name=name, help=help)
        self._modules = modules
        self._attribute = attribute

    def load(self) -> Any:
        first, *_ = [import_module(module) for module in self._modules]
        found = getattr(first, self._attribute)
        if isinstance(found, typer.Typer):
            found.rich_markup_mode = None
            group = get_group(found)
            group.name = self.name
            return group
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(self.name)(found)
        return get_command(alone)


class LazyGroup(TyperGroup):
    """A group of commands that are loaded when they are resolved: to run them, or to complete what follows them."""

    later: ClassVar[tuple[Later, ...]] = ()

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {one.name: one for one in self.later if one.name}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, Later) else command, rest
