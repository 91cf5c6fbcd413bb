"""Each private part of a library that geomill uses, with the shape that the code relies on.

Private parts change without notice. So each of their libraries has an upper bound in `pyproject.toml`, this file fails
after an upgrade that changes one of them, and it fails when the source uses one that is not listed here.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.unit.private_uses import SOURCE, inherited_uses, library_bases, members, private_uses

ROOT = Path(__file__).parents[2]
DOCUMENTED = {
    "httpx.BaseTransport",
    "httpx.SyncByteStream",
    "fastapi.applications.FastAPI",
    "fastapi.routing.APIRoute",
    "jinja2.runtime.ChainableUndefined",
    "jinja2.runtime.StrictUndefined",
    "jinja2.sandbox.ImmutableSandboxedEnvironment",
    "prometheus_client.registry.Collector",
    "psycopg.AsyncConnection",
    "rasterio.session.Session",
    "rio_tiler.io.base.BaseReader",
    "rio_tiler.io.base.SpatialMixin",
    "rio_tiler.io.rasterio.Reader",
    "stac_fastapi.pgstac.core.CoreCrudClient",
    "stac_fastapi.pgstac.extensions.filter.FiltersClient",
    "starlette.responses.Response",
    "tipg.collections.PgCollection",
    "tipg.factory.OGCFeaturesFactory",
    "tipg.model.Collection",
    "tipg.model.Collections",
    "typer.core.TyperCommand",
    "typer.core.TyperGroup",
}
"""Classes that their libraries document for subclassing. Of other classes, every inherited name is a private part."""


# The shapes


Shape = Callable[[Any, str], bool]
"""Takes the owner of a part, which is a module or a class, and the name of the part."""


def takes(*parameters: str) -> Shape:
    """The part is a function with these parameters, and perhaps more behind them."""
    return lambda owner, name: (
        tuple(inspect.signature(getattr(owner, name)).parameters)[: len(parameters)] == parameters
    )


def accepts(*parameters: str) -> Shape:
    """The part is a function that has these parameters, in any order."""
    return lambda owner, name: set(parameters) <= set(inspect.signature(getattr(owner, name)).parameters)


def set_on_instance(owner: Any, name: str) -> bool:
    return name in members(owner)


def set_on_route(owner: Any, name: str) -> bool:
    return hasattr(owner("/", endpoint=lambda: None), name)


def error(owner: Any, name: str) -> bool:
    return issubclass(getattr(owner, name), Exception)


def called_in(caller: str) -> Shape:
    """The library calls the part by its name in the function `caller`, so that an override takes effect."""
    return lambda owner, name: bool(re.search(rf"\.{name}\(", inspect.getsource(resolved(caller))))


def both(*shapes: Shape) -> Shape:
    return lambda owner, name: all(shape(owner, name) for shape in shapes)


def variables_in_routes(*names: str) -> Shape:
    """The module reads these variables when it makes its routes, so that replaced ones take effect."""

    def holds(owner: Any, name: str) -> bool:
        module = getattr(owner, name)
        nodes = ast.walk(ast.parse(inspect.getsource(module)))
        read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        return all(hasattr(module, variable) for variable in names) and set(names) <= read

    return holds


def has_files(*names: str) -> Shape:
    """The package has these files. It is not imported for them."""

    def holds(owner: Any, name: str) -> bool:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        return all((Path(spec.origin).parent / file).is_file() for file in names)

    return holds


def has_flags(owner: Any, name: str) -> bool:
    flags = getattr(owner, name)
    return int(flags.R) & int(flags.W) == 0 and int(flags.R) > 0 and int(flags.W) > 0


# The parts


class Part(NamedTuple):
    name: str
    """The name as `private_uses` prints it, or the full name."""
    use: str
    shape: Shape


PROTOCOL = "uvicorn.protocols.http.httptools_impl.HttpToolsProtocol"
CYCLE = "uvicorn.protocols.http.httptools_impl.RequestResponseCycle"
TABLE = "tipg.collections.PgCollection"
ROUTES = "tipg.factory.OGCFeaturesFactory"
CATALOGUE = "stac_fastapi.pgstac.core.CoreCrudClient"
REPLACED = ("ids_query", "datetime_query", "properties_query", "sortby_query", "TileParams", "OutputType",
            "ItemsOutputType", "QueryablesOutputType", "filter_query", "bbox_query", "OGCFeaturesFactory")  # fmt: skip

PARTS: dict[str, tuple[Part, ...]] = {
    "asyncpg": (Part("asyncpg.Connection._transport", "sets timeouts on the socket of a session", set_on_instance),),
    "azure-servicebus": (
        Part(
            "azure.servicebus.aio.ServiceBusReceiver._further_pull_receive_timeout",
            "hands over the first messages at once",
            set_on_instance,
        ),
        Part(
            "azure.servicebus.aio.ServiceBusReceiver._await_settlement_outcome",
            "settles without waiting for the answer",
            set_on_instance,
        ),
    ),
    "fastapi": (
        Part("fastapi.routing.APIRoute.dependant", "names the fields that a route knows", set_on_route),
        Part("fastapi.dependencies.models.Dependant.body_params", "names the fields of a body", set_on_instance),
        Part("fastapi.dependencies.models.Dependant.query_params", "names the query parameters", set_on_instance),
        Part("fastapi.dependencies.utils.get_flat_params", "names the parameters of a route", takes("dependant")),
        Part("fastapi.routing.iter_route_contexts", "lists all routes, for their access rules", takes("routes")),
        Part("fastapi.routing.RouteContext.methods", "tells the methods of a route", set_on_instance),
        Part("fastapi.routing.RouteContext.path", "tells the path of a route", set_on_instance),
    ),
    "fastapi-offline": (
        Part(
            "files of fastapi_offline",
            "serves Swagger UI at /docs",
            has_files("static/swagger-ui-bundle.js", "static/swagger-ui.css", "static/favicon.png"),
        ),
    ),
    "jinja2": (
        Part(
            "jinja2.environment.Environment.concat",
            "bounds the text of a template",
            called_in("jinja2.Template.render"),
        ),
        Part("jinja2.filters.do_join", "joins within a bound", takes("eval_ctx", "value", "d", "attribute")),
        Part("jinja2.filters.do_tojson", "writes JSON within a bound", takes("eval_ctx", "value", "indent")),
    ),
    "maplibre": (
        Part(
            "files of maplibre",
            "serves MapLibre GL to the viewer",
            has_files("srcjs/maplibre-gl.js", "srcjs/maplibre-gl.css"),
        ),
    ),
    "psycopg": (
        Part("psycopg.AsyncConnection.wait", "polls the socket first", takes("self", "gen", "interval", "timeout")),
        Part("psycopg.waiting.Wait", "tells what a statement waits for", has_flags),
        Part("psycopg.waiting.Ready", "tells what is ready", has_flags),
    ),
    "pypgstac": (
        Part("files of pypgstac", "installs pgstac", has_files(f"migrations/pgstac.{version('pypgstac')}.sql")),
    ),
    "rasterio": (
        Part("rasterio._err.CPLE_BaseError", "catches every error of GDAL", error),
        Part("rasterio._err.CPLE_AppDefinedError", "catches failed transformations", error),
        Part("rasterio._err.CPLE_IllegalArgError", "catches failed transformations", error),
        Part("rasterio.dtypes._gdal_typename", "writes types into a VRT", takes("dt")),
    ),
    "rio-tiler": (
        Part("rio_tiler.io.base.SpatialMixin._minzoom", "computes the zooms of a mosaic", set_on_instance),
        Part("rio_tiler.io.base.SpatialMixin._maxzoom", "computes the zooms of a mosaic", set_on_instance),
        Part("rio_tiler.io.base.SpatialMixin._dst_geom_in_tms_crs", "gives the size of pixels", set_on_instance),
        Part("rio_tiler.io.rasterio.Reader._ctx_stack", "closes the dataset with the reader", set_on_instance),
    ),
    "stac-fastapi.pgstac": (
        Part(
            f"{CATALOGUE}._search_base",
            "searches among what the caller may see",
            both(
                takes("self", "search_request", "request"),
                called_in(f"{CATALOGUE}.get_search"),
                called_in(f"{CATALOGUE}.post_search"),
                called_in(f"{CATALOGUE}.item_collection"),
            ),
        ),
        Part(
            f"{CATALOGUE}._clean_search_args",
            "checks filters before they are parsed",
            both(
                accepts("base_args", "intersects", "filter_query", "filter_lang"), called_in(f"{CATALOGUE}.get_search")
            ),
        ),
    ),
    "starlette": (
        Part("starlette.routing.compile_path", "matches paths with access rules", takes("path")),
        Part("starlette.applications.Starlette.user_middleware", "removes stac-fastapi's middleware", set_on_instance),
    ),
    "tipg": (
        Part(f"{TABLE}._geom_expr", "writes other axes", takes("self", "geometry_column", "bbox_only", "simplify")),
        Part(f"{TABLE}._select_property_columns", "selects binary values as base64", takes("self", "properties")),
        Part(f"{TABLE}._from", "names the table of a download or map", takes("self", "function_parameters", "params")),
        Part(f"{TABLE}._where_clause", "writes the condition of a download or map", takes("where")),
        Part(f"{TABLE}._sortby", "orders the rows of a download or map", takes("self", "sortby")),
        Part(f"{TABLE}._sort_expressions", "scatters the features of a tile", takes("self", "sortby")),
        Part(f"{TABLE}.cql_where", "turns errors of cql2 into refusals", accepts("ids", "properties", "cql")),
        Part(f"{TABLE}.get_tile", "scatters the features of a tile", accepts("conn", "sortby")),
        Part(f"{ROUTES}._collections_route", "adds reference systems to the list", takes("self")),
        Part(f"{ROUTES}._collection_route", "adds reference systems to a collection", takes("self")),
        Part(
            f"{ROUTES}._create_html_response",
            "shows our documents as pages",
            takes("self", "request", "data", "template_name", "title"),
        ),
        Part("tipg.factory.create_csv_rows", "writes CSV that spreadsheets do not run", takes("data")),
        Part("variables of tipg.factory", "replaces what the routes depend on", variables_in_routes(*REPLACED)),
        Part(
            "tipg.collections.mvt_settings.max_features_per_tile",
            "allows more features in a tile",
            lambda owner, name: isinstance(getattr(owner, name), int),
        ),
    ),
    "uvicorn": (
        Part(f"{PROTOCOL}.flow", "tells whether the application lets a body wait", set_on_instance),
        Part(f"{PROTOCOL}._start_asgi_task", "starts requests by turns", takes("self", "cycle", "app")),
        Part(f"{PROTOCOL}.connection_made", "counts the connections of an address", takes("self", "transport")),
        Part(f"{PROTOCOL}.connection_lost", "counts the connections of an address", takes("self", "exc")),
        Part(f"{PROTOCOL}.data_received", "counts the bytes of a head", takes("self", "data")),
        Part(f"{PROTOCOL}.on_message_begin", "begins a head", takes("self")),
        Part(f"{PROTOCOL}.on_headers_complete", "ends a head", takes("self")),
        Part(f"{PROTOCOL}.on_body", "ignores the body of a refused request", takes("self", "body")),
        Part(f"{PROTOCOL}.on_message_complete", "ends a body", takes("self")),
        *(
            Part(f"{PROTOCOL}.{name}", "reads what uvicorn knows of a connection", set_on_instance)
            for name in ("client", "cycle", "headers", "loop", "transport", "url")
        ),
        *(
            Part(f"{CYCLE}.{name}", "reads and ends the state of a request", set_on_instance)
            for name in ("disconnected", "message_event", "response_complete", "response_started")
        ),
        Part(
            "uvicorn.protocols.http.httptools_impl.STATUS_LINE",
            "answers a refused request",
            lambda owner, name: all(isinstance(getattr(owner, name)[status], bytes) for status in (408, 431, 503)),
        ),
        Part(
            "uvicorn.server.Server.capture_signals",
            "leaves signals to the role",
            both(takes("self"), called_in("uvicorn.server.Server.serve")),
        ),
    ),
}

PGSTAC = (
    "function pgstac.check_partition(text, tstzrange, tstzrange)",
    "function pgstac.collection_base_item(text, int4)",
    "function pgstac.collection_datetime(jsonb)",
    "function pgstac.collection_enddatetime(jsonb)",
    "function pgstac.collection_geom(jsonb)",
    "function pgstac.content_hydrate(jsonb, jsonb, jsonb)",
    "function pgstac.context_estimated_count(jsonb)",
    "function pgstac.cql2_query(jsonb, text, _text, bool)",
    "function pgstac.drop_table_constraints(text)",
    "function pgstac.flip_jsonb_array(jsonb)",
    "function pgstac.get_token_filter(jsonb, items, bool, bool, _text)",
    "function pgstac.jsonb_fields(jsonb, jsonb)",
    "function pgstac.page_token(text, text)",
    "function pgstac.partition_oid(text)",
    "function pgstac.search_limit(jsonb, int4)",
    "function pgstac.search_offset(jsonb, int4)",
    "function pgstac.sort_sqlorderby(jsonb, bool, _text, _text)",
    "function pgstac.stac_search_to_where(jsonb)",
    "function pgstac.to_text(jsonb)",
    "function pgstac.to_text_array(jsonb)",
    "function pgstac.upsert_queryable(text, jsonb, text, text, _text, _text)",
    "function pgstac.where_stats(text, bool, jsonb)",
    "table pgstac.collections",
    "table pgstac.items",
    "table pgstac.migrations",
    "table pgstac.partition_stats",
)
"""The parts of pgstac that our SQL uses, as `sql/pgstac.json` names them."""


# The tests


def listed() -> list[Part]:
    return [part for parts in PARTS.values() for part in parts]


def resolved(name: str) -> Any:
    """Returns the module, class or function of a full name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        with contextlib.suppress(ModuleNotFoundError):
            value = importlib.import_module(".".join(parts[:length]))
            for attribute in parts[length:]:
                value = getattr(value, attribute)
            return value
    raise AssertionError(f"there is no {name}")


@pytest.mark.parametrize("part", listed(), ids=lambda part: part.name)
def test_the_part_has_the_shape_that_we_rely_on(part: Part) -> None:
    if part.name.startswith("files of "):
        assert part.shape(None, part.name.removeprefix("files of ")), f"{part.use}: a file is missing"
        return
    owner, _, name = part.name.removeprefix("variables of ").rpartition(".")
    assert part.shape(resolved(owner), name), f"{part.name} has changed; it {part.use}"


def requirements() -> Mapping[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    matches = (
        re.match(r"([\w.-]+)(?:\[.*?\])?(.*)", text)
        for text in [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    )
    return {match[1]: match[2] for match in matches if match}


@pytest.mark.parametrize("distribution", PARTS)
def test_the_library_has_an_upper_bound(distribution: str) -> None:
    bound = re.search(r"<([0-9.]+)$", requirements()[distribution])
    assert bound, f"{distribution} has private parts that we use: give it an upper bound in pyproject.toml"
    assert numbers(version(distribution)) < numbers(bound[1])


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def test_no_other_library_has_an_upper_bound() -> None:
    assert {name for name, versions in requirements().items() if "<" in versions} == set(PARTS)


def test_every_private_use_in_the_source_is_listed() -> None:
    names = {part.name for part in listed()}
    names |= {f"*.{name.rpartition('.')[2]}" for name in names}
    assert sorted((private_uses() | inherited_uses(DOCUMENTED)) - names) == []


def test_every_listed_part_is_still_used() -> None:
    source = "\n".join(file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py"))
    words = set(re.findall(r"\w+", source))
    assert [part.name for part in listed() if re.split(r"[. ]", part.name)[-1] not in words] == []


def test_every_documented_class_is_still_a_base() -> None:
    assert sorted(DOCUMENTED - library_bases()) == []


def pgstac_uses() -> set[str]:
    """Returns the functions and tables of pgstac that our SQL names, without their arguments."""
    objects = json.loads((SOURCE / "geomill/sql/pgstac.json").read_text(encoding="utf-8"))["objects"]
    functions = {name.partition("(")[0].split(".")[1] for name in objects if name.startswith("function ")}
    tables = {name.split(".")[1] for name in objects if name.startswith(("table ", "view "))}
    text = "\n".join(file.read_text(encoding="utf-8") for file in (SOURCE / "geomill/sql").rglob("*.sql"))
    text = re.sub(r"--.*", "", text)
    called = set(re.findall(r"(?<![\w.])(?:pgstac\.)?(\w+)\(", text)) & functions
    read = set(re.findall(r"\b(?:FROM|JOIN|INTO|UPDATE|ON) (?:pgstac\.)?(\w+)\b(?!\.)", text)) & tables
    return {f"function pgstac.{name}" for name in called} | {f"table pgstac.{name}" for name in read}


def test_the_parts_of_pgstac_are_there_and_are_all_that_our_sql_uses() -> None:
    document = json.loads((SOURCE / "geomill/sql/pgstac.json").read_text(encoding="utf-8"))
    assert document["version"] == version("pypgstac"), "run script/pgstac"
    assert [name for name in PGSTAC if name not in document["objects"]] == []
    assert {name.partition("(")[0] for name in PGSTAC} == pgstac_uses()
