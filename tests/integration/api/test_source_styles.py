"""Styles that arrive with a source, from the file to the list of styles and to the drawing."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geomill.domain.access.principal import Role
from geomill.domain.states import JobStatus
from geomill.sdk import Storage
from geomill.sdk.testing import folder_storage
from geomill.store.pool import Pool
from tests.integration.api.conftest import bearing, client_of, make_key
from tests.integration.engine.platform import EnginePlatform, handlers_of, library
from tests.integration.raster import sources as rasters
from tests.integration.serve.test_rasters import image
from tests.integration.serve.zone import House, id_of
from tests.integration.vector import sources as vectors

SYMBOL = '<symbol name="0" type="fill" alpha="1"><layer><prop k="color" v="0,255,0,255"/></layer></symbol>'
QML = (
    "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>"
    '<qgis><renderer-v2 type="categorizedSymbol" attr="Number"><categories><category value="3" symbol="0"/>'
    f"</categories><symbols>{SYMBOL}</symbols></renderer-v2></qgis>"
)
ENTRIES = '<ColorMapEntry color="#000000" quantity="0"/><ColorMapEntry color="#ff00ff" quantity="1000"/>'
SLD = f"<Sld><RasterSymbolizer><ColorMap>{ENTRIES}</ColorMap></RasterSymbolizer></Sld>"
HOSTILE = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'


def put_sources(storage: Storage, folder: Path) -> None:
    features = vectors.table(vectors.squares(10), Number=list(range(10)))
    path = vectors.write(folder / "parcels.gpkg", features, kind="Polygon")
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "CREATE TABLE layer_styles (id INTEGER PRIMARY KEY, f_table_name TEXT, styleName TEXT, styleQML TEXT,"
            " styleSLD TEXT, useAsDefault BOOLEAN, update_time DATETIME)"
        )
        database.execute("INSERT INTO layer_styles VALUES (1, 'parcels', 'Land', ?, NULL, 1, NULL)", [QML])
        database.commit()
    vectors.put(storage, "parcels.gpkg", path.read_bytes())
    files = vectors.shapefile(folder, features, kind="Polygon")
    vectors.put(storage, "areas.zip", vectors.zipped({**files, "made.qml": QML.encode()}))
    vectors.put(storage, "hostile.zip", vectors.zipped({**files, "made.qml": HOSTILE.encode()}))
    data = rasters.noise((1, 100, 120), "float32", 0, 1000)
    vectors.put(storage, "dem.tif", rasters.SyntheticRaster(data, nodata=-9999).encode())
    vectors.put(storage, "dem.sld", SLD.encode())


async def published(platform: EnginePlatform, house: House, workflow_id: str, file_name: str) -> dict[str, Any]:
    name = file_name.partition(".")[0]
    inputs = {"container_name": vectors.CONTAINER, "file_name": file_name}
    inputs |= {"table_name": name} if workflow_id == "vector_processing" else {}
    job = await platform.run(workflow_id, inputs)
    assert job.status is JobStatus.COMPLETED, job.error_message
    outputs: dict[str, Any] = job.result_data or {}
    kind = "vector" if "table_name" in outputs else "raster"
    columns = {"table_name": name} if kind == "vector" else {"blob_path": outputs["blob_path"]}
    await house.publish(name, kind, outputs=outputs, **columns)
    return outputs


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
async def test_styles_of_sources_are_listed_and_drawn(
    database: str, pool: Pool, tmp_path: Path, make_platform: Callable[..., Any]
) -> None:
    storage = folder_storage(tmp_path / "zones")
    put_sources(storage, tmp_path)
    platform = EnginePlatform(database, pool, library(), handlers_of(), storage)
    platform.orchestrator()
    platform.worker(concurrency=3)
    async with House.open(database, storage) as house, client_of(database, make_platform()) as api:
        try:
            orders = {"parcels.gpkg": "vector", "areas.zip": "vector", "hostile.zip": "vector", "dem.tif": "raster"}
            runs = (published(platform, house, f"{kind}_processing", name) for name, kind in orders.items())
            _, _, hostile, _ = await asyncio.gather(*runs)
        finally:
            await platform.shutdown()
        api.headers.update(bearing(await make_key(database, Role.READER)))
        for name, title in (("parcels", "Land"), ("areas", "made"), ("dem", "dem")):
            view = (await api.get(f"/api/assets/{id_of(name)}/styles")).json()
            assert (view["default"], view["styles"][0]["origin"]) == ("source", "source")
            assert view["styles"][0]["title"] == title
        for name in ("parcels", "areas"):
            drawn = (
                await house.client.get(f"/vector/collections/{id_of(name)}/tiles/WebMercatorQuad/style.json")
            ).json()
            colors = [layer["paint"].get("fill-color") for layer in drawn["layers"]]
            assert ["case", ["==", ["get", "number"], 3], "#00ff00", "#00ff00"] in colors
        preview = f"/raster/assets/{id_of('dem')}/preview"
        values, picture = [image(await house.client.get(f"{preview}.{kind}")) for kind in ("tif", "png")]
        valid = values[1] > 0
        assert np.abs(picture[0][valid] - np.clip(values[0][valid] / 1000, 0, 1) * 255).max() <= 1.5
        assert not picture[1].any()
        [warning] = [text for text in hostile["warnings"] if "style" in text]
        assert ("'made.qml' in the ZIP file is not used" in warning, "no entities" in warning) == (True, True)
        view = (await api.get(f"/api/assets/{id_of('hostile')}/styles")).json()
        assert view["default"] == "automatic"
