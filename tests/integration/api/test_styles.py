"""Styles of assets: who may give them, which fit, and where they show."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from httpx import AsyncClient

from geomill.domain.access.principal import Role
from geomill.store.pool import open_pool
from tests.integration.api.conftest import bearing, client_of, make_key
from tests.integration.api.desk import problem
from tests.integration.serve.zone import House, id_of

RAMP = {"kind": "raster", "ramp": [{"value": 0, "color": "#000000"}, {"value": 9, "color": [255, 0, 255]}]}
BANDS = {"kind": "raster", "title": "Infrared", "bidx": [3, 2, 1], "rescale": [[0, 3000]]}
CLASSED = {
    "kind": "vector",
    "attribute": "kind",
    "classes": [{"value": "river", "color": "#0000ff"}, {"value": 7, "color": "#ff0000", "label": "seven"}],
}
ITEM = {
    "geometry": {"type": "Point", "coordinates": [1, 2]},
    "bbox": [1, 2, 1, 2],
    "properties": {"datetime": "2026-01-01T00:00:00Z", "renders": {"default": {"assets": ["data"], "bidx": [1]}}},
}
OUTPUTS = {"statistics": [{"minimum": 0, "maximum": 9}] * 3, "stac_item": ITEM}


@pytest.fixture
async def desk(make_platform: Callable[..., Any], database: str) -> AsyncIterator[tuple[AsyncClient, House]]:
    async with open_pool(database, size=2) as pool, client_of(database, make_platform()) as client:
        await House.prepare(pool)
        house = House(database, None, pool, None, client)  # type: ignore[arg-type]
        await house.publish("dem", outputs=OUTPUTS)
        await house.publish("rivers", "vector", outputs={"columns": [{"name": "kind"}], "table_name": "t"})
        yield client, house


def place(asset: str, name: str = "") -> str:
    return f"/api/assets/{id_of(asset)}/styles" + (f"/{name}" if name else "")


async def test_a_style_is_kept_listed_and_deleted(desk: tuple[AsyncClient, House]) -> None:
    client, house = desk
    by = bearing(await make_key(house.url, Role.SUBMITTER, platform_id="ddh"))
    put = await client.put(place("dem", "dark"), json={"style": RAMP, "default": True}, headers=by)
    assert put.status_code == 200, put.text
    assert put.json()["style"]["ramp"][1]["color"] == "#ff00ff"
    assert put.json()["legend"] == [{"text": "0", "color": "#000000"}, {"text": "9", "color": "#ff00ff"}]
    await client.put(place("dem", "infrared"), json={"style": BANDS, "default": True}, headers=by)
    view = (await client.get(place("dem"), headers=by)).json()
    assert view["default"] == "infrared"
    assert [(s["name"], s["default"], s["origin"]) for s in view["styles"]] == [
        ("dark", False, "person"), ("infrared", True, "person"), ("automatic", False, "computed"),
    ]  # fmt: skip
    assert (await client.get(place("dem", "default"), headers=by)).json()["title"] == "Infrared"
    assert (await client.delete(place("dem", "infrared"), headers=by)).status_code == 204
    problem(await client.delete(place("dem", "infrared"), headers=by), 404, "not_found")
    assert (await client.get(place("dem"), headers=by)).json()["default"] == "automatic"
    details = (await client.get(f"/api/assets/{id_of('dem')}", headers=by)).json()
    assert [entry["decision"] for entry in details["audit"]] == ["styled"] * 3
    assert details["audit"][0]["reason"] == "the style infrared was deleted"


async def test_an_opacity_is_kept_and_full_opacity_leaves_the_row_as_older_processes_know_it(
    desk: tuple[AsyncClient, House],
) -> None:
    client, house = desk
    by = bearing(await make_key(house.url, Role.REVIEWER))
    rows = "SELECT style FROM app.asset_styles WHERE name = 'x'"
    for opacity, stored in ((0.25, 0.25), (1, None), (0, 0)):
        put = await client.put(place("dem", "x"), json={"style": {**BANDS, "opacity": opacity}}, headers=by)
        assert put.json()["style"]["opacity"] == opacity
        async with house.pool.connection() as conn:
            row = await (await conn.execute(rows)).fetchone()
        assert row is not None
        assert row["style"].get("opacity") == stored
    for wrong in (-0.1, 1.1, "half"):
        answer = await client.put(place("dem", "x"), json={"style": {**BANDS, "opacity": wrong}}, headers=by)
        problem(answer, 422, "invalid_input")
        assert "opacity" in answer.text


async def test_only_owners_reviewers_and_operators_change_styles(desk: tuple[AsyncClient, House]) -> None:
    client, house = desk
    body = {"style": RAMP}
    who = (
        ({"roles": [Role.READER]}, 403),
        ({"roles": [Role.SUBMITTER], "platform_id": "other"}, 404),
        ({"roles": [Role.SUBMITTER], "platform_id": "ddh"}, 200),
        ({"roles": [Role.REVIEWER]}, 200),
        ({"roles": [Role.OPERATOR]}, 200),
    )
    for caller, status in who:
        headers = bearing(await make_key(house.url, *caller.pop("roles"), **caller))
        answer = await client.put(place("dem", "dark"), json=body, headers=headers)
        assert answer.status_code == status, (caller, answer.text)
        if status == 404:
            assert (await client.get(place("dem"), headers=headers)).status_code == 404
            assert (await client.delete(place("dem", "dark"), headers=headers)).status_code == 404


WRONG: list[tuple[str, str, dict[str, Any], str]] = [
    ("dem", "automatic", RAMP, "name"),
    ("dem", "default", RAMP, "name"),
    ("dem", "x", CLASSED, "style.kind"),
    ("rivers", "x", RAMP, "style.kind"),
    ("dem", "x", {"kind": "raster", "bidx": [4]}, "style.bidx"),
    ("dem", "x", {"kind": "raster", "expression": "b9/b1", "rescale": [[0, 1]]}, "style.expression"),
    ("dem", "x", {"kind": "raster", "expression": "b1+(", "rescale": [[0, 1]]}, "style.expression"),
    ("dem", "x", {"kind": "raster", "expression": "nothing(b1)", "rescale": [[0, 1]]}, "style.expression"),
    ("dem", "x", {"kind": "raster", "colormap_name": "viridi"}, "style.colormap_name"),
    ("dem", "x", {"kind": "raster", "colormap_name": "viridis", "ramp": RAMP["ramp"]}, "style.raster"),
    ("dem", "x", {"kind": "raster", "rescale": [[5, 1]]}, "style.raster"),
    ("dem", "x", {"kind": "raster", "ramp": [RAMP["ramp"][1], RAMP["ramp"][0]]}, "style.raster"),
    ("dem", "x", {"kind": "raster", "classes": [{"color": "#ffffff"}]}, "style.raster.classes.0"),
    ("dem", "x", {"kind": "raster", "classes": [{"value": 1, "color": "red"}]}, "style.raster.classes.0.color"),
    ("rivers", "x", {"kind": "vector", "attribute": "kind"}, "style.vector"),
    ("rivers", "x", {"kind": "vector", "line_width": -1}, "style.vector.line_width"),
]


async def test_a_style_that_does_not_fit_is_refused_by_field(desk: tuple[AsyncClient, House]) -> None:
    client, house = desk
    by = bearing(await make_key(house.url, Role.OPERATOR))
    for asset, name, style, field in WRONG:
        answer = await client.put(place(asset, name), json={"style": style}, headers=by)
        assert answer.status_code == 422, (style, answer.text)
        assert [error["field"] for error in answer.json()["errors"]] == [field], answer.text
        assert len((await client.get(place(asset), headers=by)).json()["styles"]) == 1


async def test_an_asset_has_a_bounded_number_of_styles(desk: tuple[AsyncClient, House]) -> None:
    client, house = desk
    by = bearing(await make_key(house.url, Role.OPERATOR))
    await house.execute(
        "INSERT INTO app.asset_styles (asset_id, name, style, updated_by)"
        " SELECT %s, 's' || n, '{\"kind\": \"raster\"}', 'me' FROM generate_series(1, 32) AS n",
        id_of("dem"),
    )
    problem(await client.put(place("dem", "more"), json={"style": RAMP}, headers=by), 409, "conflict")
    assert (await client.put(place("dem", "s7"), json={"style": RAMP}, headers=by)).status_code == 200


async def test_an_unknown_column_is_a_warning_and_layers_are_for_maplibre(desk: tuple[AsyncClient, House]) -> None:
    client, house = desk
    by = bearing(await make_key(house.url, Role.OPERATOR))
    fine = (await client.put(place("rivers", "kinds"), json={"style": CLASSED}, headers=by)).json()
    assert fine["warnings"] == []
    areas = fine["maplibre"][0]
    assert (areas["type"], areas["source-layer"]) == ("fill", "default")
    assert areas["paint"]["fill-color"][:3] == ["case", ["==", ["get", "kind"], "river"], "#0000ff"]
    odd = {**CLASSED, "attribute": "knd"}
    warned = (await client.put(place("rivers", "odd"), json={"style": odd}, headers=by)).json()
    assert "no column 'knd'" in warned["warnings"][0]


async def test_the_item_of_the_catalogue_has_the_styles(desk: tuple[AsyncClient, House]) -> None:
    client, house = desk
    by = bearing(await make_key(house.url, Role.OPERATOR))
    await client.put(place("dem", "infrared"), json={"style": BANDS, "default": True}, headers=by)
    async with house.pool.connection() as conn:
        rows = await (await conn.execute("SELECT content FROM pgstac.items WHERE id = 'dem'")).fetchall()
    renders = rows[0]["content"]["properties"]["renders"]
    drawn = {"assets": ["data"], "title": "Infrared", "bidx": [3, 2, 1], "rescale": [[0.0, 3000.0]]}
    assert renders == {
        "default": drawn, "infrared": drawn, "automatic": {"assets": ["data"], "bidx": [1]},
    }  # fmt: skip


async def test_a_style_of_qgis_is_converted_or_refused_in_words(desk: tuple[AsyncClient, House]) -> None:
    client, house = desk
    by = bearing(await make_key(house.url, Role.OPERATOR))
    qml = (
        '<qgis><rasterrenderer type="multibandcolor" redBand="3" greenBand="2" blueBand="1"/></qgis>',
        '<qgis><rasterrenderer type="hillshade"/></qgis>',
        '<qgis><rasterrenderer type="multibandcolor" redBand="9" greenBand="2" blueBand="1"/></qgis>',
    )
    put = await client.put(place("dem", "qgis"), json={"qml": qml[0]}, headers=by)
    assert (put.status_code, put.json()["style"]["bidx"]) == (200, [3, 2, 1])
    for text, field in ((qml[1], "qml"), (qml[2], "style.bidx")):
        refused = await client.put(place("dem", "other"), json={"qml": text}, headers=by)
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field)
    both = await client.put(place("dem", "both"), json={"qml": qml[0], "style": RAMP}, headers=by)
    assert both.status_code == 422


async def test_an_asset_shows_title_extent_and_the_legend_of_its_own_colours(desk: tuple[AsyncClient, House]) -> None:
    client, house = desk
    by = bearing(await make_key(house.url, Role.READER))
    described = {"bbox": [170, -20, -170, -10], "dataset_metadata": {"title": "Heights"}, "raster_type": "dem"}
    await house.publish("heights", outputs={**OUTPUTS, **described})
    await house.publish("odd", outputs={"bbox": "everywhere", "dataset_metadata": 7, "raster_type": "?"})
    page = (await client.get("/api/assets", headers=by)).json()["assets"]
    shown = {asset["asset_id"]: (asset["title"], asset["bbox"]) for asset in page}
    assert shown[id_of("heights")] == ("Heights", [170, -20, -170, -10])
    assert shown[id_of("odd")] == (None, None)
    automatic = (await client.get(place("heights"), headers=by)).json()["styles"][-1]
    assert automatic["legend"][0] == {"text": "0", "color": "#26543e"}
    assert automatic["legend"][-1] == {"text": "9", "color": "#fafafa"}
    assert (await client.get(place("odd"), headers=by)).json()["styles"][-1]["legend"] == []
