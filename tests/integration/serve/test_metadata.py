"""Titles, licences and attributions in TileJSON, WMTS, collections and pages, instead of identifiers."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from geomill.sdk import Storage
from tests.integration.raster import sources
from tests.integration.serve.test_rasters import put_raster
from tests.integration.serve.zone import House

pytestmark = pytest.mark.asyncio(loop_scope="module")

METADATA = {
    "title": "Heights & depths",
    "description": "Values < 0 are below the sea",
    "license": "CC-BY-4.0",
    "keywords": ["height"],
    "attribution": 'Acme & Sons "est. 1900"',
}
OWS = "{http://www.opengis.net/ows/1.1}"


@pytest.fixture(scope="module")
def heights(shelf: Storage) -> dict[str, Any]:
    data = sources.noise((1, 60, 60), "float32", 0, 1000)
    return put_raster(shelf, sources.SyntheticRaster(data, nodata=-9999), "described", target_crs="EPSG:3857")


async def test_a_raster_shows_its_metadata(house: House, heights: dict[str, Any]) -> None:
    outputs = {**heights, "raster_type": "dem", "dataset_metadata": METADATA}
    asset_id = await house.publish("described", outputs=outputs, blob_path=heights["blob_path"])
    start = f"/raster/assets/{asset_id}"
    tilejson = (await house.client.get(f"{start}/WebMercatorQuad/tilejson.json")).json()
    assert (tilejson["name"], tilejson["description"]) == (METADATA["title"], METADATA["description"])
    assert tilejson["attribution"] == "Acme &amp; Sons &quot;est. 1900&quot;"
    assert tilejson["tiles"]
    capabilities = ElementTree.fromstring((await house.client.get(f"{start}/WMTSCapabilities.xml")).content)
    assert {title.text for title in capabilities.iter(f"{OWS}Title")} >= {METADATA["title"]}
    assert [text.text for text in capabilities.iter(f"{OWS}Abstract")] == [METADATA["description"]]
    assert [text.text for text in capabilities.iter(f"{OWS}AccessConstraints")] == ["CC-BY-4.0"]
    for version in ("1.1.1", "1.3.0"):
        await _shown_by_wms(house, asset_id, version)
    page = (await house.client.get(f"/viewer/{asset_id}")).text
    assert "Heights &amp; depths" in page
    assert "CC-BY-4.0" in page
    assert "Values < 0" not in page


async def _shown_by_wms(house: House, asset_id: str, version: str) -> None:
    address = f"/wms/{asset_id}?SERVICE=WMS&VERSION={version}&REQUEST=GetCapabilities"
    document = ElementTree.fromstring((await house.client.get(address)).content)
    texts = [(element.tag.rpartition("}")[2], element.text) for element in document.iter()]
    layer = texts[texts.index(("Name", asset_id)) :]
    shown = [text for text in layer if text[0] in ("Title", "Abstract", "Keyword")]
    assert shown[:3] == [("Title", METADATA["title"]), ("Abstract", METADATA["description"]), ("Keyword", "height")]
    assert ("Title", METADATA["attribution"]) in layer
    assert ("AccessConstraints", "CC-BY-4.0") in texts


async def test_a_raster_without_metadata_keeps_its_name(house: House, heights: dict[str, Any]) -> None:
    asset_id = await house.publish("plain", outputs=heights, blob_path=heights["blob_path"])
    tilejson = (await house.client.get(f"/raster/assets/{asset_id}/WebMercatorQuad/tilejson.json")).json()
    assert tilejson["name"]
    assert "attribution" not in tilejson


async def test_a_layer_shows_its_metadata(house: House) -> None:
    await house.execute("CREATE TABLE geo.described_r1 (gid bigint PRIMARY KEY, geom geometry(Point, 4326))")
    await house.execute("INSERT INTO geo.described_r1 VALUES (1, 'SRID=4326;POINT(1 2)')")
    outputs = {"dataset_metadata": METADATA, "bbox": [1, 2, 1, 2]}
    asset_id = await house.publish("layer", "vector", outputs=outputs, table_name="described_r1")
    collection = (await house.client.get(f"/vector/collections/{asset_id}")).json()
    assert (collection["title"], collection["description"]) == (METADATA["title"], METADATA["description"])
    assert (collection["keywords"], collection["attribution"]) == (["height"], METADATA["attribution"])
    listed = (await house.client.get("/vector/collections")).json()["collections"]
    assert [entry["attribution"] for entry in listed if entry["id"] == asset_id] == [METADATA["attribution"]]
    address = f"/vector/collections/{asset_id}/tiles/WebMercatorQuad/tilejson.json"
    tilejson = (await house.client.get(address)).json()
    assert (tilejson["name"], tilejson["attribution"]) == (METADATA["title"], "Acme &amp; Sons &quot;est. 1900&quot;")
