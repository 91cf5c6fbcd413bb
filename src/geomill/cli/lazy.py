"""Commands whose modules are imported only when the command runs. `geomill --help` imports none of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group


class Later(TyperCommand):
    """A placeholder for a command in listings: its name and its help text."""

    def __init__(self, name: str, help: str, *modules: str, attribute: str = "app") -> None:  # noqa: A002  Typer's word
        """`load` imports all `modules`. `attribute` names the group or the function in the first one."""
        super().__init__(name=name, help=help)
        self._modules = modules
        self._attribute = attribute

    def load(self) -> Any:
        first, *_ = [import_module(module) for module in self._modules]
        target = getattr(first, self._attribute)
        if isinstance(target, typer.Typer):
            target.rich_markup_mode = None
            group = get_group(target)
            group.name = self.name
            return group
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(self.name)(target)
        return get_command(single)


class LazyGroup(TyperGroup):
    """A group that loads a command when it is resolved: to run it, or to complete its arguments."""

    later: ClassVar[tuple[Later, ...]] = ()

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {command.name: command for command in self.later if command.name}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, arguments = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, Later) else command, arguments
