"""Asks the command line whether it would accept the words of a manifest or a unit, without running the command."""

from __future__ import annotations

from typing import Any

from typer.main import get_command

from geomill.cli.main import app


def refusal(words: list[str]) -> str | None:
    """Return why `geomill` would refuse these words, or None."""
    command: Any = get_command(app)
    name, context = "geomill", None
    try:
        while True:
            context = command.make_context(name, list(words), parent=context)
            if not hasattr(command, "resolve_command"):
                return None
            words = [*context._protected_args, *context.args]
            name, command, words = command.resolve_command(context, words)
    except Exception as error:
        if not hasattr(error, "format_message"):  # the base of Typer's own errors is private
            raise
        return str(error.format_message())
