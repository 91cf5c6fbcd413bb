"""Styles through HTTP: tiles, previews, WMTS and the viewer draw as the style says, pixel by pixel."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import numpy as np
import pytest
from owslib.wmts import WebMapTileService

from geomill.domain.access.principal import Role
from geomill.sdk import Storage
from tests.integration.raster import sources
from tests.integration.serve.test_rasters import image, published, put_raster, tile_at
from tests.integration.serve.zone import House, id_of

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning"),
]

RAMP = {"kind": "raster", "ramp": [{"value": 0, "color": "#000000"}, {"value": 1000, "color": "#ff00ff"}]}
CLASSES = {
    "kind": "raster",
    "classes": [
        {"maximum": 500, "color": "#ff0000", "label": "low"},
        {"minimum": 500, "color": "#0000ff80", "label": "high"},
    ],
}
BEYOND = {"kind": "raster", "bidx": [7], "rescale": [[0, 1]]}


@pytest.fixture(scope="module")
def heights(shelf: Storage) -> dict[str, Any]:
    data = sources.noise((1, 200, 240), "float32", 0, 1000)
    return put_raster(shelf, sources.SyntheticRaster(data, nodata=-9999), "styled", target_crs="EPSG:3857")


async def give(house: House, name: str, styles: dict[str, Any], default: str | None = None) -> None:
    for key, style in styles.items():
        await house.execute(
            "INSERT INTO app.asset_styles (asset_id, name, is_default, style, updated_by)"
            " VALUES (%s, %s, %s, %s, 'me')",
            id_of(name), key, key == default, json.dumps(style),
        )  # fmt: skip


async def test_a_default_style_colours_pictures_and_leaves_values(house: House, heights: dict[str, Any]) -> None:
    start = await published(house, "ramped", heights, "dem")
    await give(house, "ramped", {"purple": RAMP, "two": CLASSES}, default="purple")
    values = image(await house.client.get(f"{start}/preview.tif"))
    valid = values[1] > 0
    picture = image(await house.client.get(f"{start}/preview.png"))
    expected = np.clip(values[0] / 1000, 0, 1) * 255
    assert np.abs(picture[0][valid].astype(float) - expected[valid]).max() <= 1.5
    assert not picture[1].any()

    tile = tile_at(12)
    address = f"{start}/tiles/WebMercatorQuad/12/{tile.x}/{tile.y}"
    raw, drawn = image(await house.client.get(f"{address}.tif")), image(await house.client.get(f"{address}.png"))
    inside = raw[1] > 0
    assert np.abs(drawn[2][inside].astype(float) - np.clip(raw[0][inside] / 1000, 0, 1) * 255).max() <= 1.5


async def test_a_named_style_wins_over_the_default_and_the_caller_over_both(
    house: House, heights: dict[str, Any]
) -> None:
    start = await published(house, "named", heights, "dem")
    await give(house, "named", {"purple": RAMP, "two": CLASSES}, default="purple")
    values = image(await house.client.get(f"{start}/preview.tif"))
    classed = image(await house.client.get(f"{start}/preview.png", params={"style": "two"}))
    low, high = (values[0] < 500) & (values[1] > 0), values[0] >= 500
    assert (classed[:, low] == np.array([[255], [0], [0], [255]])).all()
    assert (classed[:, high] == np.array([[0], [0], [255], [128]])).all()

    plain = image(await house.client.get(f"{start}/preview.png", params={"style": "automatic"}))
    assert plain[1].any()
    by_hand = image(await house.client.get(f"{start}/preview.png", params={"rescale": "0,1000"}))
    assert by_hand[1].any()
    both = image(await house.client.get(f"{start}/preview.png", params={"style": "purple", "rescale": "0,2000"}))
    assert both[0].max() <= 128
    unknown = await house.client.get(f"{start}/preview.png", params={"style": "puple"})
    assert unknown.status_code == 404
    assert "purple" in unknown.text
    assert (await house.client.get(f"{start}/WebMercatorQuad/tilejson.json?style=puple")).status_code == 404
    assert (await house.client.get(f"{start}/preview.tif", params={"style": "two"})).status_code == 422


OPACITIES = {
    "ramp": RAMP,
    "colormap": {"kind": "raster", "bidx": [1], "rescale": [[0, 1000]], "colormap_name": "viridis"},
    "classes": CLASSES,
    "grey": {"kind": "raster", "bidx": [1], "rescale": [[0, 1000]]},
    "automatic": {"kind": "raster"},
}


@pytest.mark.parametrize("name", OPACITIES)
async def test_a_style_with_opacity_lets_shine_through_what_lies_below(
    house: House, heights: dict[str, Any], name: str
) -> None:
    start = await published(house, f"shining-{name}", heights, "dem")
    faded = {**OPACITIES[name], "opacity": 0.4}
    await give(house, f"shining-{name}", {"full": OPACITIES[name], "faded": faded}, default="faded")
    full = image(await house.client.get(f"{start}/preview.png", params={"style": "full"}))
    plain = image(await house.client.get(f"{start}/preview.png", params={"style": "automatic"}))
    assert (np.array_equal(full, plain)) == (name == "automatic")
    for address, colours in ((f"{start}/preview.png", full), (f"{start}/preview.webp", None)):
        drawn = image(await house.client.get(address))
        assert np.abs(drawn[-1] - full[-1] * 0.4).max() <= 1, address
        assert colours is None or (drawn[:-1][:, full[-1] > 0] == full[:-1][:, full[-1] > 0]).all()
    tile = tile_at(12)
    chosen = await house.client.get(f"{start}/tiles/WebMercatorQuad/12/{tile.x}/{tile.y}")
    assert chosen.headers["content-type"] == "image/png", "JPEG has no opacity"
    assert 0 < image(chosen)[-1].max() <= 103
    asked = image(await house.client.get(f"{start}/preview.png", params={"bidx": 1, "rescale": "0,1000"}))
    assert asked[-1].max() == 255, "what the caller asks for wins over the style"
    jpeg = await house.client.get(f"{start}/preview.jpg")
    assert jpeg.status_code == 200
    assert len(image(jpeg)) in (1, 3)
    values = image(await house.client.get(f"{start}/preview.tif"))
    assert len(np.unique(values[-1])) <= 2, "a file with values has a plain mask"


async def test_a_style_that_no_longer_fits_is_told_when_named_and_left_out_by_default(
    house: House, heights: dict[str, Any]
) -> None:
    start = await published(house, "unfit", heights, "dem")
    await give(house, "unfit", {"seventh": BEYOND}, default="seventh")
    assert (await house.client.get(f"{start}/preview.png")).status_code == 200
    named = await house.client.get(f"{start}/preview.png", params={"style": "seventh"})
    assert (named.status_code, "band 7" in named.json()["detail"]) == (409, True)


async def test_tilejson_wmts_and_viewer_pass_the_style_on(house: House, heights: dict[str, Any]) -> None:
    start = await published(house, "passed", heights, "dem")
    await give(house, "passed", {"purple": RAMP, "two": CLASSES}, default="purple")
    tilejson = (await house.client.get(f"{start}/WebMercatorQuad/tilejson.json?style=two")).json()
    assert "style=two" in tilejson["tiles"][0]
    wmts = (await house.client.get(f"{start}/WMTSCapabilities.xml")).text
    assert "style={Style}" in wmts
    assert [name in wmts for name in (">default<", ">purple<", ">two<", ">automatic<")] == [True] * 4
    fixed = (await house.client.get(f"{start}/WMTSCapabilities.xml?style=two")).text
    assert ("style=two" in fixed, "{Style}" in fixed) == (True, False)
    page = (await house.client.get(f"/viewer/{id_of('passed')}?style=two&rescale=0,9")).text
    assert "tilejson.json?style=two\\u0026rescale=0%2C9" in page
    assert ("</svg>low<" in page, "#0000ff80" in page) == (True, True)
    assert (await house.client.get(f"/viewer/{id_of('passed')}?style=no")).status_code == 404


async def test_a_changed_style_changes_the_etag(house: House, heights: dict[str, Any]) -> None:
    start = await published(house, "tagged", heights, "dem")
    first = await house.client.get(f"{start}/preview.png")
    again = await house.client.get(f"{start}/preview.png", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    other = await published(house, "tagged2", heights, "dem")
    await give(house, "tagged2", {"purple": RAMP}, default="purple")
    before = (await house.client.get(f"{other}/preview.png")).headers["etag"]
    await asyncio.sleep(1.1)  # the directory keeps an asset for a second
    await house.execute("UPDATE app.asset_styles SET is_default = false WHERE asset_id = %s", id_of("tagged2"))
    assert (await house.client.get(f"{other}/preview.png")).headers["etag"] != before


async def test_the_style_of_an_asset_that_nobody_may_see_is_not_told(house: House, heights: dict[str, Any]) -> None:
    start = await published(house, "secret_style", heights, "dem", clearance_state="ouo")
    await give(house, "secret_style", {"secret": RAMP}, default="secret")
    answer = await house.client.get(f"{start}/preview.png", params={"style": "wrong"})
    assert (answer.status_code, "secret" in answer.text.replace("secret_style", "")) == (404, False)
    reader = await house.key(Role.READER)
    assert (await house.client.get(f"{start}/preview.png?style=secret", headers=reader)).status_code == 200


async def test_a_vector_has_its_style_for_maplibre(house: House) -> None:
    await house.execute("CREATE TABLE geo.styled AS SELECT 1 AS id, ST_SetSRID(ST_MakePoint(1, 2), 4326) AS geom")
    asset_id = await house.publish("styled_points", "vector", table_name="styled", outputs={"bbox": [1, 2, 1, 2]})
    faint_style = {"kind": "vector", "opacity": 0.5, "circle_opacity": 0.5}
    red_style = {"kind": "vector", "circle_color": "#ff0000"}
    await give(house, "styled_points", {"red": red_style, "faint": faint_style}, default="red")
    start = f"/vector/collections/{asset_id}/tiles/WebMercatorQuad"
    document = (await house.client.get(f"{start}/style.json")).json()
    assert document["layers"][2]["paint"]["circle-color"] == "#ff0000"
    assert (await house.client.get(document["sources"]["asset"]["url"])).status_code == 200
    plain = (await house.client.get(f"{start}/style.json?style=automatic")).json()
    assert plain["layers"][2]["paint"]["circle-color"] == "#2a78b8"
    assert (await house.client.get(f"{start}/style.json?style=blue")).status_code == 404
    page = (await house.client.get(f"/viewer/{asset_id}")).text
    assert "#ff0000" in page
    faint = (await house.client.get(f"{start}/style.json?style=faint")).json()["layers"][2]["paint"]
    assert (faint["circle-opacity"], faint["circle-stroke-opacity"]) == (0.25, 0.25)


async def test_one_wmts_document_lists_what_the_caller_sees(house: House, heights: dict[str, Any]) -> None:
    shown = (await published(house, "listed_raster", heights, "dem")).rpartition("/")[2]
    hidden = (await published(house, "unlisted_raster", heights, "dem", clearance_state="ouo")).rpartition("/")[2]
    text = (await house.client.get("/raster/WMTSCapabilities.xml")).text
    service = WebMapTileService("http://x/", xml=text.encode())
    assert shown in service.contents
    assert hidden not in service.contents
    assert set(service.contents[shown].tilematrixsetlinks) == {"WebMercatorQuad", "WorldCRS84Quad"}
    tile = tile_at(12)
    places = {"TileMatrixSet": "WebMercatorQuad", "TileMatrix": 12, "TileCol": tile.x, "TileRow": tile.y}
    template = service.contents[shown].resourceURLs[0]["template"]
    assert image(await house.client.get(template.format(**places, Style="default"))).shape[1:] == (256, 256)
    reader = await house.key(Role.READER)
    assert hidden in (await house.client.get("/raster/WMTSCapabilities.xml", headers=reader)).text
    assert "offset=1" in (await house.client.get("/raster/WMTSCapabilities.xml?limit=1", headers=reader)).text


async def test_values_of_a_palette_stay_values(house: House, shelf: Storage) -> None:
    data = np.arange(64 * 64, dtype="uint8").reshape(1, 64, 64) % 4
    colors = {0: (0, 0, 0, 255), 1: (255, 0, 0, 255), 2: (0, 9, 0, 255), 3: (1, 2, 3, 255)}
    raster = sources.SyntheticRaster(data, colormap=colors)
    output = put_raster(shelf, raster, "paletted", target_crs="EPSG:3857")
    start = await published(house, "paletted", output, "categorical")
    values = image(await house.client.get(f"{start}/preview.tif"))
    assert values.shape[0] == 2
    assert set(np.unique(values[0][values[1] > 0])) <= {0, 1, 2, 3}
    raw = np.load(io.BytesIO((await house.client.get(f"{start}/preview.npy")).content))
    assert raw.shape[0] == 2
    picture = image(await house.client.get(f"{start}/preview.png"))
    assert (255, 0, 0) in {tuple(pixel[:3]) for pixel in picture.reshape(len(picture), -1).T.tolist()}


async def test_a_point_names_its_bands_and_a_map_is_a_picture(house: House, shelf: Storage) -> None:
    raster = sources.SyntheticRaster(sources.noise((3, 60, 80), "uint16", 1, 999))
    output = put_raster(shelf, raster, "named_bands", target_crs="EPSG:3857")
    start = await published(house, "named_bands", output, "multispectral")
    info = (await house.client.get(f"{start}/info")).json()
    west, south, east, north = (await house.client.get(f"{start}/info.geojson")).json()["bbox"]
    place = f"{start}/point/{(west + east) / 2},{(south + north) / 2}"
    names = [text or name for name, text in info["band_descriptions"]]
    point = (await house.client.get(place)).json()
    assert len(set(point["band_descriptions"])) == 3
    assert point["band_descriptions"] == names
    third = (await house.client.get(place, params={"bidx": 3})).json()
    assert (third["band_names"], third["band_descriptions"]) == (["b3"], names[2:])
    computed = (await house.client.get(place, params={"expression": "b3/b1"})).json()
    assert computed["band_descriptions"] == ["b3/b1"]
    drawn = await house.client.get(f"{start}/map", params={"width": 20, "height": 10, "f": "png"})
    assert image(drawn).shape[1:] == (10, 20)


async def test_a_map_reads_boxes_as_the_standard_writes_them(house: House, shelf: Storage) -> None:
    raster = sources.SyntheticRaster(sources.noise((1, 60, 80), "uint8"))
    start = await published(house, "in_boxes", put_raster(shelf, raster, "in_boxes"), "single_band")
    west, south, east, north = (await house.client.get(f"{start}/info.geojson")).json()["bbox"]
    size = {"width": 20, "height": 10, "f": "png"}
    expected = await house.client.get(f"{start}/map", params={"bbox": f"{west},{south},{east},{north}", **size})
    assert image(expected).any()
    uri = "http://www.opengis.net/def/crs/"
    boxes = {
        f"{uri}EPSG/0/4326": f"{south},{west},{north},{east}",
        "[EPSG:4326]": f"{south},{west},0,{north},{east},9",
        "EPSG:4326": f"{south},{west},{north},{east}",
        f"{uri}OGC/1.3/CRS84": f"{west},{south},{east},{north}",
        "[OGC:CRS84]": f"{west},{south},{east},{north}",
    }
    for system, box in boxes.items():
        drawn = await house.client.get(f"{start}/map", params={"bbox": box, "bbox-crs": system, **size})
        assert drawn.content == expected.content, system
    for system, swapped in ((f"{uri}EPSG/0/4326", True), (f"{uri}OGC/1.3/CRS84", False)):
        warped = await house.client.get(f"{start}/map", params={"crs": system, **size})
        corner = [float(number) for number in warped.headers["content-bbox"].split(",")[:2]]
        assert corner == pytest.approx([south, west] if swapped else [west, south], abs=1e-3), system
    for system in ("http://example.org/def/crs/EPSG/0/4326", "[nonsense]", "/etc/passwd", f"{uri}EPSG/0/1"):
        refused = await house.client.get(f"{start}/map", params={"crs": system, **size})
        assert refused.status_code in (400, 422), system
