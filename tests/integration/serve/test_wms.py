"""WMS for rasters and vectors: what owslib parses, and pixels compared with the data."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
import rasterio
from httpx import Response
from owslib.wms import WebMapService
from rasterio.warp import transform_bounds

from geomill.domain.access.principal import Role
from geomill.sdk import Storage
from tests.integration.raster import sources
from tests.integration.serve.test_rasters import file_of, image, published, put_raster
from tests.integration.serve.test_styles import CLASSES, RAMP, give
from tests.integration.serve.zone import KEY, House, id_of

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning"),
]

MAP = {"SERVICE": "WMS", "VERSION": "1.3.0", "REQUEST": "GetMap", "FORMAT": "image/png", "TRANSPARENT": "TRUE"}


@pytest.fixture(scope="module")
def heights(shelf: Storage) -> dict[str, Any]:
    data = sources.noise((1, 120, 160), "float32", 0, 1000)
    return put_raster(shelf, sources.SyntheticRaster(data, nodata=-9999), "wms", target_crs="EPSG:3857")


async def get(house: House, path: str = "", **params: Any) -> Response:
    return await house.client.get(f"/wms/{path}", params={**MAP, **params})


def exception(answer: Response) -> str:
    assert answer.status_code == 400, answer.text
    assert "ServiceExceptionReport" in answer.text
    return answer.text


async def squares(house: House, **columns: Any) -> str:
    """Two squares of one degree beside each other, at 10 and 11 E, 50 N, and a point far away."""
    name = f"w_{uuid4().hex[:10]}"
    await house.execute(f"CREATE TABLE geo.{name} (id integer PRIMARY KEY, kind text, geom geometry(Geometry, 4326))")
    await house.execute(
        f"INSERT INTO geo.{name} VALUES (1, 'wood', ST_MakeEnvelope(10, 50, 11, 51, 4326)),"
        " (2, 'lake', ST_MakeEnvelope(11, 50, 12, 51, 4326)), (3, 'tree', ST_SetSRID(ST_MakePoint(20, 20), 4326))"
    )
    return await house.publish(name, "vector", table_name=name, outputs={"bbox": [10, 20, 20, 51]}, **columns)


async def test_a_map_of_a_raster_has_the_pixels_of_the_file(
    house: House, shelf: Storage, heights: dict[str, Any]
) -> None:
    start = await published(house, "wms_dem", heights, "dem")
    await give(house, "wms_dem", {"purple": RAMP, "two": CLASSES}, default="purple")
    with rasterio.open(file_of(shelf, heights)) as file:
        values, bounds = file.read(1), file.bounds
    box = {"BBOX": ",".join(map(str, bounds)), "CRS": "EPSG:3857", "WIDTH": 160, "HEIGHT": 120}
    layer = start.rpartition("/")[2]
    values = values[:120, :160]
    picture = image(await get(house, LAYERS=layer, STYLES="", **{**box, **_size(shelf, heights)}))
    with rasterio.open(file_of(shelf, heights)) as file:
        values = file.read(1)
    valid = values != -9999
    assert picture.shape == (4, *values.shape)
    assert np.array_equal(picture[3] > 0, valid)
    assert np.abs(picture[0][valid].astype(float) - np.clip(values[valid] / 1000, 0, 1) * 255).max() <= 1.5
    classed = image(await get(house, LAYERS=layer, STYLES="two", **{**box, **_size(shelf, heights)}))
    assert (classed[:3, (values < 500) & valid] == np.array([[255], [0], [0]])).all()
    plain = image(await get(house, LAYERS=layer, TRANSPARENT="FALSE", BGCOLOR="0x00FF00", **{**box, "BBOX": "0,0,9,9"}))
    assert (plain == np.array([0, 255, 0]).reshape(3, 1, 1)).all()


def _size(shelf: Storage, heights: dict[str, Any]) -> dict[str, int]:
    with rasterio.open(file_of(shelf, heights)) as file:
        return {"WIDTH": file.width, "HEIGHT": file.height}


async def test_latitude_is_first_in_version_1_3_0_and_last_in_1_1_1(
    house: House, shelf: Storage, heights: dict[str, Any]
) -> None:
    layer = (await published(house, "wms_axes", heights, "dem")).rpartition("/")[2]
    with rasterio.open(file_of(shelf, heights)) as file:
        west, south, east, north = transform_bounds(file.crs, "EPSG:4326", *file.bounds)
    size = {"LAYERS": layer, "WIDTH": 50, "HEIGHT": 40}
    swapped = image(await get(house, CRS="EPSG:4326", BBOX=f"{south},{west},{north},{east}", **size))
    plain = image(await get(house, CRS="CRS:84", BBOX=f"{west},{south},{east},{north}", **size))
    old = image(await get(house, VERSION="1.1.1", SRS="EPSG:4326", BBOX=f"{west},{south},{east},{north}", **size))
    assert (swapped[3] > 0).mean() > 0.9
    assert np.array_equal(swapped, plain)
    assert np.array_equal(swapped, old)
    wrong = image(await get(house, CRS="EPSG:4326", BBOX=f"{west},{south},{east},{north}", **size))
    assert not wrong[3].any()


async def test_a_map_of_a_vector_has_the_colours_of_its_classes(house: House) -> None:
    asset_id = await squares(house)
    style = {
        "kind": "vector", "fill_opacity": 1, "line_width": 0, "line_opacity": 0, "attribute": "kind",
        "circle_radius": 5, "circle_color": "#123456",
        "classes": [{"value": "wood", "color": "#00ff00"}, {"value": "lake", "color": "#0000ff"}],
    }  # fmt: skip
    await house.execute(
        "INSERT INTO app.asset_styles (asset_id, name, is_default, style, updated_by)"
        " VALUES (%s, 'kinds', true, %s, 'me'), (%s, 'faint', false, %s, 'me')",
        asset_id, json.dumps(style), asset_id, json.dumps({**style, "opacity": 0.5}),
    )  # fmt: skip
    size = {"LAYERS": asset_id, "WIDTH": 40, "HEIGHT": 20, "CRS": "CRS:84"}
    picture = image(await get(house, BBOX="10,50,12,51", **size))
    assert (picture[:, :, :20] == np.array([0, 255, 0, 255]).reshape(4, 1, 1)).all()
    assert (picture[:, :, 20:] == np.array([0, 0, 255, 255]).reshape(4, 1, 1)).all()
    faint = image(await get(house, BBOX="10,50,12,51", STYLES="faint", **size))
    assert set(np.unique(faint[3])) == {128}
    point = image(await get(house, BBOX="18,19,22,21", **size))
    assert point[:, 10, 20].tolist() == [0x12, 0x34, 0x56, 255]
    assert 60 <= (point[3] > 0).sum() <= 90  # a disc with a radius of five pixels
    assert not image(await get(house, BBOX="100,10,102,11", **size))[3].any()
    info = await get(house, REQUEST="GetFeatureInfo", QUERY_LAYERS=asset_id, BBOX="10,50,12,51", I=5, J=5, **size)
    assert [feature["properties"]["kind"] for feature in info.json()["features"]] == ["wood"]
    text = await get(
        house, REQUEST="GetFeatureInfo", QUERY_LAYERS=asset_id, BBOX="10,50,12,51", INFO_FORMAT="text/plain", I=30, J=5,
        **size,
    )  # fmt: skip
    assert "kind = lake" in text.text


async def test_layers_are_stacked_the_first_one_lowest(house: House) -> None:
    below, above = await squares(house), await squares(house)
    size = {"WIDTH": 8, "HEIGHT": 4, "CRS": "CRS:84", "BBOX": "10.1,50.1,11.9,50.9"}
    half = image(await get(house, LAYERS=below, **size))[3].min()
    both = image(await get(house, LAYERS=f"{below},{above}", **size))[3].min()
    assert both > half
    assert image(await get(house, LAYERS=below, FORMAT="image/jpeg", **size)).shape == (3, 4, 8)


async def test_values_at_a_place_have_the_names_of_their_bands(house: House, shelf: Storage) -> None:
    raster = sources.SyntheticRaster(sources.noise((2, 60, 80), "uint16", 1, 999))
    output = put_raster(shelf, raster, "wms_names", target_crs="EPSG:3857")
    start = await published(house, "wms_names", output, "multispectral")
    with rasterio.open(file_of(shelf, output)) as file:
        values, bounds, size = file.read(), file.bounds, {"WIDTH": file.width, "HEIGHT": file.height}
    info = await get(
        house, REQUEST="GetFeatureInfo", LAYERS="x", QUERY_LAYERS=start.rpartition("/")[2], CRS="EPSG:3857",
        BBOX=",".join(map(str, bounds)), I=10, J=20, **size,
    )  # fmt: skip
    [feature] = info.json()["features"]
    assert list(feature["properties"].values()) == values[:, 20, 10].tolist()
    assert len(feature["properties"]) == 2


async def test_owslib_reads_the_capabilities_of_both_versions(house: House, heights: dict[str, Any]) -> None:
    layer = (await published(house, "wms_listed", heights, "dem")).rpartition("/")[2]
    await give(house, "wms_listed", {"purple": RAMP})
    hidden = (await published(house, "wms_hidden", heights, "dem", clearance_state="ouo")).rpartition("/")[2]
    for version in ("1.3.0", "1.1.1"):
        text = (await get(house, REQUEST="GetCapabilities", VERSION=version)).text
        service = WebMapService("http://x/wms/", version=version, xml=text.encode())
        assert layer in service.contents
        assert hidden not in service.contents
        assert service.contents[layer].boundingBoxWGS84 == (14.9, 45.0, 15.2, 45.2)
        assert {"image/png", "image/jpeg"} <= set(service.getOperationByName("GetMap").formatOptions)
    own = (await get(house, layer, REQUEST="GetCapabilities")).text
    service = WebMapService("http://x/wms/", version="1.3.0", xml=own.encode())
    assert list(service.contents) == [layer]
    assert list(service.contents[layer].styles) == ["default", "purple", "automatic"]
    first = (await get(house, REQUEST="GetCapabilities", LIMIT=1)).text
    assert "OFFSET=1" in first


async def test_legends_show_classes(house: House, heights: dict[str, Any]) -> None:
    layer = (await published(house, "wms_legend", heights, "dem")).rpartition("/")[2]
    await give(house, "wms_legend", {"two": CLASSES})
    legend = image(await get(house, REQUEST="GetLegendGraphic", LAYER=layer, STYLE="two"))
    assert legend.shape[1] == 40
    assert legend[:3, 10, 14].tolist() == [255, 0, 0]
    assert (await get(house, REQUEST="GetLegendGraphic", LAYER=layer)).status_code == 200
    assert "StyleNotDefined" in exception(await get(house, REQUEST="GetLegendGraphic", LAYER=layer, STYLE="x"))


async def test_wrong_requests_are_answered_as_xml(house: House, heights: dict[str, Any]) -> None:
    layer = (await published(house, "wms_wrong", heights, "dem")).rpartition("/")[2]
    right = {"LAYERS": layer, "CRS": "EPSG:3857", "BBOX": "0,0,1,1", "WIDTH": 9, "HEIGHT": 9}
    for change, code in (
        ({"LAYERS": "nobody"}, "LayerNotDefined"),
        ({"STYLES": "nobody"}, "StyleNotDefined"),
        ({"CRS": "EPSG:0"}, "InvalidCRS"),
        ({"CRS": "/etc/passwd"}, "InvalidCRS"),
        ({"FORMAT": "image/gif"}, "InvalidFormat"),
        ({"BBOX": "1,1,0,0"}, "BBOX"),
        ({"BBOX": "nan,0,1,1"}, "BBOX"),
        ({"WIDTH": 2049}, "WIDTH"),
        ({"WIDTH": ""}, "MissingParameterValue"),
        ({"REQUEST": "GetTile"}, "OperationNotSupported"),
        ({"LAYERS": ",".join([layer] * 9)}, "LAYERS"),
        ({"BGCOLOR": "red"}, "BGCOLOR"),
    ):
        assert code in exception(await get(house, **{**right, **change})), change
    assert "<script>" not in exception(await get(house, **{**right, "LAYERS": "<script>"}))


async def test_a_map_is_for_whom_the_asset_is_shown_and_gone_with_it(house: House, heights: dict[str, Any]) -> None:
    layer = (await published(house, "wms_ouo", heights, "dem", clearance_state="ouo")).rpartition("/")[2]
    box = {"LAYERS": layer, "CRS": "EPSG:3857", "BBOX": "0,0,1,1", "WIDTH": 9, "HEIGHT": 9}
    assert "LayerNotDefined" in exception(await get(house, **box))
    reader = await house.key(Role.READER)
    assert (await house.client.get("/wms/", params={**MAP, **box}, headers=reader)).status_code == 200
    partner = await house.key(Role.SUBMITTER, platform_id="other")
    assert (await house.client.get("/wms/", params={**MAP, **box}, headers=partner)).status_code == 400
    ticket = {"geomill_link": KEY.ticket(layer, int(time.time()) + 600, 0)}
    assert (await get(house, layer, **box, **ticket)).status_code == 200
    other = (await published(house, "wms_ouo2", heights, "dem", clearance_state="ouo")).rpartition("/")[2]
    assert (await get(house, layer, **{**box, "LAYERS": other}, **ticket)).status_code == 400
    signed = (await get(house, layer, REQUEST="GetCapabilities", **ticket)).text
    assert "geomill_link=" in signed
    await house.execute(
        "UPDATE app.geospatial_assets SET approval_state = 'approved', deleted_at = now(), deleted_by = 'x',"
        " withdrawn_through = 1 WHERE asset_id = %s",
        id_of("wms_ouo"),
    )
    await asyncio.sleep(1.1)
    assert (await house.client.get("/wms/", params={**MAP, **box}, headers=reader)).status_code == 400
    assert (await get(house, layer, **box, **ticket)).status_code in (401, 404)
