"""Finds handlers by entry points and in the modules that `GEOMILL_HANDLERS` names."""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from types import MappingProxyType, ModuleType

from geomill.domain.engine.handler import HandlerInfo
from geomill.errors import NotFoundError, SettingsError, nearest
from geomill.sdk.registration import MARK, RegisteredHandler

log = logging.getLogger(__name__)

GROUPS = ("geomill.handlers", "geomill.stage_jobs")
"""Groups of entry points. A handler runs the code of a stage job, so stage jobs are found in the same way."""


class Registry(Mapping[str, RegisteredHandler]):
    """All handlers by name. Immutable."""

    def __init__(self, handlers: Mapping[str, RegisteredHandler]) -> None:
        self._handlers = MappingProxyType(dict(handlers))
        self.info: Mapping[str, HandlerInfo] = MappingProxyType({name: h.info for name, h in handlers.items()})

    def __getitem__(self, name: str) -> RegisteredHandler:
        try:
            return self._handlers[name]
        except KeyError:
            raise NotFoundError(f"there is no handler '{name}'", remedy=nearest(name, self._handlers)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._handlers

    def __iter__(self) -> Iterator[str]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)


def load_handlers(modules: Sequence[str] = ()) -> Registry:
    """Import the modules that the entry points and `modules` name, including all modules of packages."""
    return _registry(find_modules(modules))


def find_modules(modules: Sequence[str] = ()) -> Iterator[ModuleType]:
    """Return all modules in which handlers and stage jobs may be."""
    names = [entry.value.partition(":")[0] for group in GROUPS for entry in entry_points(group=group)]
    return (module for name in dict.fromkeys([*names, *modules]) for module in _modules(name))


def handlers_in(modules: Iterable[str]) -> Registry:
    """Return the handlers of exactly these modules."""
    return _registry(map(_import, modules))


def _registry(modules: Iterable[ModuleType]) -> Registry:
    handlers: dict[str, RegisteredHandler] = {}
    for module in modules:
        _collect(module, handlers)
    return Registry(dict(sorted(handlers.items())))


def _modules(name: str) -> Iterator[ModuleType]:
    module = _import(name)
    yield module
    for child in pkgutil.iter_modules(getattr(module, "__path__", ()), prefix=f"{name}."):
        yield from _modules(child.name)


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SettingsError(
            f"the handler module '{name}' cannot be imported: {error}",
            remedy="install it into geomill's environment or correct GEOMILL_HANDLERS",
        ) from error


def _collect(module: ModuleType, handlers: dict[str, RegisteredHandler]) -> None:
    for value in vars(module).values():
        handler = getattr(value, MARK, None)
        if not isinstance(handler, RegisteredHandler):
            continue
        for name in (handler.info.name, *handler.former_names):
            registered = handlers.setdefault(name, handler)
            same = registered.function is handler.function
            if not same and replaces("handler", name, _place(registered), _place(handler)):
                handlers[name] = handler


def replaces(kind: str, name: str, first: str, second: str) -> bool:
    """Return whether the second of two things with one name takes the place of the first. Yours replaces a built-in
    one, and a warning says so. Two of yours are refused. The places are names of Python objects."""
    if _built_in(first) and not _built_in(second):
        log.warning("the %s '%s' of %s replaces the built-in one, %s", kind, name, second, first)
        return True
    if _built_in(second) and not _built_in(first):
        return False
    raise SettingsError(f"two {kind}s are called '{name}': {first} and {second}; rename one of them")


def _built_in(place: str) -> bool:
    return place.startswith("geomill.")


def _place(handler: RegisteredHandler) -> str:
    return f"{handler.function.__module__}.{handler.function.__qualname__}"
