"""The code version of a handler: a fingerprint of the source of its top-level package or module.

It is computed from the files soon after they were imported, once in each process. It covers the handler's own package,
and not the libraries that it uses.

Known weakness: a module that is imported later, inside a function, may be newer than the version says.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geomill import __version__

if TYPE_CHECKING:
    from geomill.sdk.registration import RegisteredHandler

UNKNOWN = "unknown"
"""The code version of a module whose source cannot be read, or that has too much of it."""
OWN_PACKAGE = "geomill"
DIGITS = 12
MOST_FILES = 5_000
MOST_BYTES = 64 * 1024 * 1024


def code_versions(handlers: Mapping[str, RegisteredHandler]) -> dict[str, str]:
    """Return the code version of each handler, by its name."""
    return {name: code_version(handler.function) for name, handler in handlers.items()}


def code_version(function: Callable[..., Any]) -> str:
    """Return the code version of the package or module in which a function is defined. That of geomill's own handlers
    begins with the release."""
    module = getattr(function, "__module__", None) or ""
    file = getattr(sys.modules.get(module), "__file__", None)
    fingerprint = _fingerprint(source_of(module, Path(file))) if file else UNKNOWN
    return f"{__version__}+{fingerprint}" if module.partition(".")[0] == OWN_PACKAGE else fingerprint


def source_of(module: str, file: Path) -> Path:
    """Return the folder of the top-level package of a module, or the file of a module that is in no package. It follows
    from the module's own file: a package without `__init__.py` may have folders elsewhere that are not its own."""
    names = module.split(".")
    place = file.parent if file.name == "__init__.py" else file.with_suffix("")
    if place.parts[-len(names) :] != tuple(names):
        return file
    if len(names) == 1:
        return place if place.is_dir() and file.parent == place else file
    return place.parents[len(names) - 2]


@cache
def _fingerprint(place: Path) -> str:
    return source_fingerprint([place])


def source_fingerprint(places: list[Path]) -> str:
    """Return the fingerprint of Python files: those named, and those in the folders named. It depends on contents and
    on paths inside a folder, so it is the same on every machine."""
    digests: list[str] = []
    size = 0
    try:
        for path, name in _sources(places):
            content = path.read_bytes()
            size += len(content)
            digests.append(f"{name} {hashlib.sha256(content).hexdigest()}")
            if len(digests) > MOST_FILES or size > MOST_BYTES:
                return UNKNOWN
    except OSError:
        return UNKNOWN
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()[:DIGITS] if digests else UNKNOWN


def _sources(places: list[Path]) -> Iterator[tuple[Path, str]]:
    """Return each Python file with its path inside its folder. Hidden ones, such as a virtual environment and an
    editor's lock, are left out."""
    for place in places:
        if place.suffix == ".py":
            yield place, place.name
        for folder, inner, files in os.walk(place):
            inner[:] = [name for name in inner if not name.startswith((".", "__pycache__"))]
            for file in files:
                if file.endswith(".py") and not file.startswith("."):
                    path = Path(folder, file)
                    yield path, path.relative_to(place).as_posix()
