"""Finds where the source uses private parts of the libraries that it imports.

A use is private if a name in it begins with one underscore, if it takes part in a class that its library does not
document for subclassing, if it replaces something inside a library, or if it reads the files of a package.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src"
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
MODELS = {"pydantic", "pydantic_core", "pydantic_settings"}
"""Libraries whose classes are there to be inherited from, as most of our classes do."""
FILES_OF = {"files", "find_spec"}
"""Functions that lead to the files of a package."""
NOT_FOREIGN = sys.stdlib_module_names | {"geomill", "builtins"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_foreign(module: str) -> bool:
    return module.split(".")[0] not in NOT_FOREIGN


class Module(NamedTuple):
    name: str
    nodes: list[ast.AST]
    imported: dict[str, str]
    """The names that the module imports, each with its full name."""


@cache
def _modules() -> tuple[Module, ...]:
    modules = []
    for file in SOURCE.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        name = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        modules.append(Module(name, nodes, _imported(nodes)))
    return tuple(modules)


def private_uses() -> set[str]:
    """Returns the private names that the source imports, reads or replaces, and the packages whose files it reads."""
    uses: set[str] = set()
    for _, nodes, imported in _modules():
        uses |= {name for name in imported.values() if is_foreign(name) and any(map(is_private, name.split(".")))}
        for node in nodes:
            if isinstance(node, ast.Attribute):
                uses.update(_of_attribute(node, imported))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                uses.update(_of_call(node.func.id, node.args, imported))
    return uses


def _imported(nodes: list[ast.AST]) -> dict[str, str]:
    imported: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            imported |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return imported


def _of_attribute(node: ast.Attribute, imported: dict[str, str]) -> Iterator[str]:
    """Yields a private name as `*._name`: the syntax tree does not say what the object is."""
    full_name = imported.get(node.value.id, "") if isinstance(node.value, ast.Name) else ""
    if is_private(node.attr) and node.attr not in NAMED_TUPLE and full_name != "os" and not _is_own(node.value):
        yield f"*.{node.attr}"
    if full_name and is_foreign(full_name):
        if isinstance(node.ctx, ast.Store):
            yield f"{full_name}.{node.attr}"
        elif node.attr == "__file__":
            yield f"files of {full_name}"


def _of_call(function: str, arguments: list[ast.expr], imported: dict[str, str]) -> Iterator[str]:
    constant = next((argument.value for argument in arguments if isinstance(argument, ast.Constant)), None)
    text = constant if isinstance(constant, str) else ""
    if function in ("getattr", "setattr", "hasattr") and is_private(text):
        yield f"*.{text}"
    elif function in FILES_OF and text and is_foreign(text):
        yield f"files of {text}"
    elif function == "vars" and isinstance(arguments[0], ast.Name):
        full_name = imported.get(arguments[0].id, "")
        if full_name and is_foreign(full_name):
            yield f"variables of {full_name}"


def _is_own(value: ast.expr) -> bool:
    """Whether it is the instance, its class, or `super()`; the scan of the classes looks at those."""
    if isinstance(value, ast.Call):
        value = value.func
    return isinstance(value, ast.Name) and value.id in ("self", "cls", "super")


def inherited_uses(documented: set[str]) -> set[str]:
    """Returns what our classes use of their bases in libraries: private names, and all names if the base from which the
    class inherits is not a documented one."""
    uses: set[str] = set()
    for own in _classes():
        is_documented = library_bases(own) <= documented
        for name in _used(own):
            owner = next((base for base in own.__mro__ if is_foreign(base.__module__) and name in members(base)), None)
            if owner is not None and (is_private(name) or not is_documented):
                uses.add(f"{full_name(owner)}.{name}")
    return uses


def library_bases(*classes: type) -> set[str]:
    """Returns the classes of libraries from which the given classes, or all of ours, inherit directly or through a
    class of ours."""
    lineage = {
        ancestor for own in classes or _classes() for ancestor in own.__mro__ if not is_foreign(ancestor.__module__)
    }
    return {full_name(base) for ancestor in lineage for base in ancestor.__bases__ if is_foreign(base.__module__)}


def full_name(owner: type) -> str:
    return f"{owner.__module__}.{owner.__qualname__}"


@cache
def _classes() -> tuple[type, ...]:
    """Returns our classes that inherit from a class of a library, directly or not."""
    names: set[str] = set()
    modules: set[str] = set()
    size = -1
    while len(names) > size:  # until a round adds no class
        size = len(names)
        for module in _modules():
            added = set(_inheriting(module, names))
            names |= added
            modules |= {module.name} if added else set()
    values = [value for module in modules for value in vars(importlib.import_module(module)).values()]
    return tuple(own for own in values if inspect.isclass(own) and own.__module__ in modules and own.__name__ in names)


def _inheriting(module: Module, names: set[str]) -> Iterator[str]:
    """Yields the classes of a module whose bases come from a library or are among the names."""
    for node in module.nodes:
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            words = re.findall(r"\w+", ast.unparse(base))
            origin = module.imported.get(words[0], "")
            if words[0] in names or (origin and is_foreign(origin) and origin.split(".")[0] not in MODELS):
                yield node.name


def _used(own: type) -> set[str]:
    """Returns the names that the text of a class defines, and those that it reads from itself or its bases."""
    source = inspect.getsource(own)
    names = set(vars(own)) & set(re.findall(r"\w+", source))
    for node in ast.walk(ast.parse(textwrap.dedent(source))):
        if isinstance(node, ast.Attribute) and _is_own(node.value):
            names.add(node.attr)
    return {name for name in names if not name.startswith("__")}


@cache
def members(owner: type) -> frozenset[str]:
    """Returns the names that a class has, with those that its methods set on the instance."""
    names = set(vars(owner))
    try:
        source = inspect.getsource(owner)
    except (OSError, TypeError):  # a class that was compiled has no source
        return frozenset(names)
    for node in ast.walk(ast.parse(textwrap.dedent(source))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            names.add(node.attr)
    return frozenset(names)
