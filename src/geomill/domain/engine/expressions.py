"""Templates in workflow files: `{{ nodes.validate.output.size_mb }}`.

A string that is a single expression keeps the type of its value. With text around it the result is a string, in which
values that are not strings are written as JSON. An undefined value is an error, except under `default` or `is defined`.
An attribute of a mapping is always a key: `{{ x.items }}` is the key "items", never a method.

Jinja2 parses and runs the expressions in a sandbox without loaders, globals or random numbers. Most expressions are
plain paths. Those are followed directly, with the same result; a property test compares both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from jinja2 import ChainableUndefined, StrictUndefined, TemplateSyntaxError, Undefined, meta, nodes, pass_eval_context
from jinja2.environment import TemplateExpression
from jinja2.exceptions import SecurityError
from jinja2.filters import do_join, do_tojson
from jinja2.sandbox import ImmutableSandboxedEnvironment

from geomill.domain.engine.expression_rules import (
    LARGEST_BASE,
    LARGEST_EXPONENT,
    LARGEST_PRODUCT,
    LONGEST_TEMPLATE,
    check_rules,
)
from geomill.domain.jsonvalue import to_json
from geomill.errors import ExpressionError, nearest

Scope = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """A path that an expression reads, such as ("nodes", "validate", "output"). An optional one may be undefined."""

    path: tuple[str | int, ...]
    optional: bool = False

    def __str__(self) -> str:
        head, *rest = self.path
        return str(head) + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in rest)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A value of a workflow file that is ready to render: a scalar, a list or a mapping with templates in it."""

    render: Callable[[Scope], Any]
    references: tuple[Reference, ...] = ()


def compile_value(value: Any) -> Compiled:
    """Compile every template inside a JSON-like value. Raises `ExpressionError` on bad syntax."""
    if isinstance(value, str):
        return _compile_text(value)
    if isinstance(value, Mapping):
        return _compile_mapping({str(key): compile_value(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return _compile_list([compile_value(item) for item in value])
    return _constant(value)


def is_one_expression(text: str) -> bool:
    """Whether the text is a single `{{ expression }}`, which keeps the type of its value."""
    try:
        tree = environment().parse(text.strip())
    except TemplateSyntaxError:
        return True  # compiling the template reports the syntax error
    return _single_expression(tree) is not None


def _constant(value: Any) -> Compiled:
    return Compiled(lambda _: value)


def _compile_mapping(parts: dict[str, Compiled]) -> Compiled:
    renders = [(key, part.render) for key, part in parts.items()]
    references = tuple(reference for part in parts.values() for reference in part.references)
    return Compiled(lambda scope: {key: render(scope) for key, render in renders}, references)


def _compile_list(parts: list[Compiled]) -> Compiled:
    renders = [part.render for part in parts]
    references = tuple(reference for part in parts for reference in part.references)
    return Compiled(lambda scope: [render(scope) for render in renders], references)


@lru_cache(maxsize=4096)
def _compile_text(text: str) -> Compiled:
    if "{{" not in text and "{%" not in text and "{#" not in text:
        return _constant(text)
    if len(text) > LONGEST_TEMPLATE:
        raise ExpressionError(f"the template {text[:80]!r} cannot be read: it is too long")
    try:
        tree = environment().parse(text.strip())
        check_rules(text, tree)
        references = tuple(_references(tree))
        single = _single_expression(tree)
        if single is None:
            return Compiled(_text_renderer(text), references)
        path = _path(single)
        return Compiled(_path_renderer(text, path) if path else _expression_renderer(text, single), references)
    except TemplateSyntaxError as error:
        raise ExpressionError(f"the template {text!r} cannot be read: {error.message}") from error
    except (RecursionError, MemoryError, SyntaxError, ValueError) as error:
        raise ExpressionError(
            f"the template {text[:80]!r} cannot be read: it is nested too deeply or too long"
        ) from error


def _single_expression(tree: nodes.Template) -> nodes.Expr | None:
    match tree.body:
        case [nodes.Output(nodes=[nodes.TemplateData()])]:
            return None
        case [nodes.Output(nodes=[nodes.Expr() as expression])]:
            return expression
    return None


# Rendering


def _text_renderer(text: str) -> Callable[[Scope], Any]:
    template = environment().from_string(text)
    return lambda scope: _guarded(text, lambda: _plain(template.render(scope)))


def _expression_renderer(text: str, single: nodes.Expr) -> Callable[[Scope], Any]:
    """Does what Jinja's compile_expression does, but from the tree: cutting `{{-` off the text could cut off a
    minus."""
    body: list[nodes.Node] = [nodes.Assign(nodes.Name("result", "store"), single, lineno=1)]
    template = environment().from_string(nodes.Template(body, lineno=1))
    expression = TemplateExpression(template, undefined_to_none=False)

    def evaluate(scope: Scope) -> Any:
        return _guarded(text, lambda: _plain(expression(scope)))

    return evaluate


def _path_renderer(text: str, path: tuple[str | int, ...]) -> Callable[[Scope], Any]:
    def walk(scope: Scope) -> Any:
        value: Any = scope
        for key in path:
            if type(value) is dict or isinstance(value, Mapping):
                try:
                    value = value[key]
                except KeyError:
                    raise _failure(text, _missing_key(value, key)) from None
            else:
                value = _step(text, value, key)
        return value if type(value) is dict or not isinstance(value, Mapping) else _plain(value)

    return walk


def _step(text: str, value: Any, key: str | int) -> Any:
    member = environment().getitem(value, key) if isinstance(key, int) else environment().getattr(value, key)
    return _guarded(text, lambda: _plain(member))


def _guarded(text: str, evaluate: Callable[[], Any]) -> Any:
    try:
        return evaluate()
    except Exception as error:  # filters raise any exception, including AttributeError and AssertionError
        raise _failure(text, str(error) or type(error).__name__) from error


def _failure(text: str, reason: str) -> ExpressionError:
    return ExpressionError(f"the template {text!r} cannot be evaluated: {reason}")


def _missing_key(value: Mapping[Any, Any], key: object) -> str:
    return f"there is no {key!r} ({nearest(str(key), map(str, value))})"


def _plain(value: Any) -> Any:
    """Convert a value to JSON types. Filters return generators, tuples and Markup strings."""
    if value is None or type(value) in (int, bool):
        return value
    if isinstance(value, Undefined):
        str(value)  # raises, with the reason that the lookup recorded
    if isinstance(value, str | float):
        return _storable(value)
    if isinstance(value, Mapping):
        return {str(_storable(str(key))): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | range | Iterator):
        return [_plain(item) for item in value]
    raise TypeError(f"its result is a {type(value).__name__}, which is not a JSON value")


def _storable(value: str | float) -> str | float:
    """Return the value as a plain type. Raises `NotJson` for NaN and NUL, which the database would refuse later."""
    plain = float(value) if isinstance(value, float) else str(value)
    to_json(plain)
    return plain


# The sandbox


class _Missing(ChainableUndefined, StrictUndefined):
    """An undefined value. Its attributes are undefined too, `default` and `is defined` accept it, other uses fail."""


WIDEST_INDENT = 16
LONGEST_TEXT = 10_000_000
_PADDING = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs", "format", "format_map", "translate"})
_REMOVED_FILTERS = ("random", "attr", "pprint", "center", "format", "indent", "batch", "slice", "wordwrap")


def _bounded(parts: Iterable[str]) -> str:
    """Join the parts that a template writes. Stops a loop that writes too much."""
    pieces, length = [], 0
    for part in parts:
        pieces.append(part)
        length += len(part)
        if length > LONGEST_TEXT:
            raise SecurityError("its result is too long")
    return "".join(pieces)


class _Environment(ImmutableSandboxedEnvironment):
    concat = staticmethod(_bounded)
    intercepted_binops = frozenset({"*", "**", "%"})

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Refuse padding and formatting too, which can make a text of any length from a short one."""
        return attr not in _PADDING and super().is_safe_attribute(obj, attr, value)

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self._key(obj, attribute) if isinstance(obj, Mapping) else super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return self._key(obj, argument) if isinstance(obj, Mapping) else super().getitem(obj, argument)

    def _key(self, obj: Mapping[Any, Any], key: Any) -> Any:
        try:
            return obj[key]
        except (KeyError, TypeError):
            return self.undefined(hint=_missing_key(obj, key))

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805  Jinja's own names
        """Call a function. The string methods `replace` and `join` have the same bounds as the filters."""
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if isinstance(owner, str) and name == "replace":
            return _replace(owner, *args, **kwargs)
        if isinstance(owner, str) and name == "join":
            args = (list(args[0]),)
            _refuse_longer_than_bound(len(args[0]) * len(owner))
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            raise SecurityError("the operator % does not format text; write {{ … }} inside the text")
        if operator == "**" and not (abs(left) <= LARGEST_BASE and abs(right) <= LARGEST_EXPONENT):
            raise SecurityError("the power is too large")
        sizes = [len(side) for side in (left, right) if isinstance(side, str | list | tuple)]
        factors = [side for side in (left, right) if isinstance(side, int)]
        if operator == "*" and sizes and factors and sizes[0] * factors[0] > LARGEST_PRODUCT:
            raise SecurityError("the repeated text or list is too long")
        return super().call_binop(context, operator, left, right)


def _text(value: Any) -> Any:
    """Return a value for use inside text: strings unchanged, everything else as JSON."""
    if isinstance(value, str | Undefined):
        return value
    return json.dumps(_plain(value), ensure_ascii=False)


@cache
def environment() -> _Environment:
    env = _Environment(undefined=_Missing, finalize=_text, autoescape=False, keep_trailing_newline=True)
    env.globals = {"range": env.globals["range"]}
    for name in _REMOVED_FILTERS:
        del env.filters[name]
    env.filters |= {"replace": _replace, "join": _join, "tojson": _to_json}
    return env


def _replace(text: Any, old: Any, new: Any, count: int | None = None) -> str:
    """Does what Jinja's `replace` does, but refuses results that are too long."""
    whole, part, other = str(text), str(old), str(new)
    times = whole.count(part) if count is None else min(count, whole.count(part))
    _refuse_longer_than_bound(len(whole) + times * len(other))
    return whole.replace(part, other, -1 if count is None else count)


@pass_eval_context
def _join(context: Any, values: Any, separator: Any = "", attribute: str | int | None = None) -> str:
    items = list(values)
    _refuse_longer_than_bound(len(items) * len(str(separator)))
    return str(do_join(context, items, separator, attribute))


@pass_eval_context
def _to_json(context: Any, value: Any, indent: int | None = None) -> Any:
    if indent is not None and not 0 <= indent <= WIDEST_INDENT:
        raise SecurityError(f"the indent is not between 0 and {WIDEST_INDENT}")
    return do_tojson(context, value, indent)


def _refuse_longer_than_bound(length: int) -> None:
    if length > LARGEST_PRODUCT:
        raise SecurityError("its result is too long")


# References


def _path(node: nodes.Node) -> tuple[str | int, ...] | None:
    match node:
        case nodes.Name(name=name):
            return (name,)
        case nodes.Getattr(node=inner, attr=attribute):
            above = _path(inner)
            return (*above, attribute) if above else None
        case nodes.Getitem(node=inner, arg=nodes.Const(value=str() | int() as key)):
            above = _path(inner)
            return (*above, key) if above else None
    return None


def _references(tree: nodes.Template) -> Iterator[Reference]:
    outside = meta.find_undeclared_variables(tree)
    for reference in _walk(tree, optional=False):
        if reference.path[0] in outside:
            yield reference


def _walk(node: nodes.Node, *, optional: bool) -> Iterator[Reference]:
    path = _path(node)
    if path:
        yield Reference(path, optional)
        return
    if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr):
        yield from _walk(node.node.node, optional=optional)  # a method: the path ends before its name
        rest: list[nodes.Node] = [*node.args, *node.kwargs]
    else:
        rest = list(node.iter_child_nodes())
    for child in rest:
        yield from _walk(child, optional=optional or _asks(node, child))


def _asks(node: nodes.Node, child: nodes.Node) -> bool:
    """Whether `node` accepts an undefined `child`."""
    match node:
        case nodes.Filter(name="default" | "d", node=inner):
            return child is inner
        case nodes.Test(name="defined" | "undefined"):
            return True
        case nodes.CondExpr(test=test):
            return child is not test
        case nodes.If(test=test):
            return child is not test
    return False
