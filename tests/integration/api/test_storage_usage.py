"""The use of storage, by zone and by asset."""

from __future__ import annotations

from typing import Any

from geomill.client.files import metadata
from geomill.domain.access.principal import Role
from geomill.settings import RetentionSettings
from tests.integration.api.desk import TIFF, order, problem

STORAGE = "/api/v1/storage"


async def test_files_of_all_revisions_count(make_counter: Any) -> None:
    counter = await make_counter(busy=True)
    empty = (await counter.get(STORAGE)).json()
    zones = {zone["zone"]: zone for zone in empty["zones"]}
    assert (zones["bronze"]["bytes"], zones["silver"]["bytes"], zones["silver"]["kind"]) == (0, 0, "folder")
    assert zones["silver"]["free_bytes"] > 0
    published = await counter.published()
    await counter.published(overwrite=True)
    assert (await counter.get(STORAGE)).json() == empty  # kept for a minute
    counter.client._transport.app.state.gateway.storage_figures._remembered._value = None
    silver = next(zone for zone in (await counter.get(STORAGE)).json()["zones"] if zone["zone"] == "silver")
    assert (silver["assets"], silver["objects"], silver["bytes"]) == (1, 2, 2 * len(TIFF))
    assert silver["platforms"] == [{"platform_id": "ddh", "assets": 1, "objects": 2, "bytes": 2 * len(TIFF)}]
    figures = (await counter.get("/metrics")).text
    assert f'geomill_storage_bytes{{platform="ddh",zone="silver"}} {2 * len(TIFF)}.0' in figures.replace(
        'zone="silver",platform="ddh"', 'platform="ddh",zone="silver"'
    )
    (asset,) = (await counter.get(f"{STORAGE}/assets")).json()["assets"]
    assert (asset["asset_id"], asset["revisions"]) == (published["asset"]["asset_id"], 2)
    assert (asset["objects"], asset["bytes"]) == (2, 2 * len(TIFF))
    assert (asset["external_bytes"], asset["table_bytes"]) == (0, 0)


async def test_an_odd_inventory_breaks_nothing(make_counter: Any) -> None:
    counter = await make_counter()
    await counter.submit()
    for files in ('{"a": 1}', '["x", {"size": "many"}, {"size": 1e30}, {"size": -7}, null]', "7"):
        async with counter.engine.pool.connection() as conn:
            await conn.execute("SET session_replication_role = replica")  # no trigger guards the row
            await conn.execute(
                "UPDATE app.geospatial_assets SET served_revision = 1,"
                " outputs = jsonb_build_object('files', %s::jsonb), external_files = '[{}, 7]', external_revision = 1",
                (files,),
            )
            await conn.execute("RESET session_replication_role")
        for path in (STORAGE, f"{STORAGE}/assets"):
            assert (await counter.get(path)).status_code == 200, files


async def test_pages_of_assets(make_counter: Any) -> None:
    counter = await make_counter()
    for number in range(3):
        refs = {"dataset_id": "d", "resource_id": f"r{number}", "version_id": "v"}
        assert (await counter.post("submit", order(platform_refs=refs))).status_code == 202
    first = (await counter.get(f"{STORAGE}/assets", limit=2)).json()
    second = (await counter.get(f"{STORAGE}/assets", limit=2, cursor=first["next_cursor"])).json()
    assert len({asset["asset_id"] for asset in first["assets"] + second["assets"]}) == 3
    assert second["next_cursor"] is None
    assert (await counter.get(f"{STORAGE}/assets", platform_id="arcgis")).json()["assets"] == []
    problem(await counter.get(f"{STORAGE}/assets", limit=1001), 422, "invalid_input")


async def test_a_dry_run_of_the_cleanup(make_counter: Any) -> None:
    counter = await make_counter(busy=True, retention=RetentionSettings(keep_superseded_days=1))
    published = await counter.published()
    await counter.published(overwrite=True)
    assert (await counter.get(f"{STORAGE}/cleanup")).json()["revisions"] == []
    upload = await counter.client.post(
        "/api/platform/uploads",
        headers={
            "Tus-Resumable": "1.0.0",
            "Upload-Length": "5",
            "Upload-Metadata": metadata({"filename": "a.tif", "platform_id": "ddh"}),
        },
    )
    async with counter.engine.pool.connection() as conn:
        await conn.execute("SET session_replication_role = replica")  # no trigger guards the row
        await conn.execute("UPDATE app.asset_revisions SET superseded_at = now() - interval '2 days'")
        await conn.execute("UPDATE app.uploads SET updated_at = now() - interval '2 days'")
        await conn.execute("RESET session_replication_role")
    view = (await counter.get(f"{STORAGE}/cleanup")).json()
    (revision,) = view["revisions"]
    assert (revision["asset_id"], revision["revision"]) == (published["asset"]["asset_id"], 1)
    assert (revision["reason"], revision["bytes"]) == ("superseded", len(TIFF))
    assert [old["upload_id"] in upload.headers["location"] for old in view["uploads"]] == [True]
    assert (view["jobs"], view["more"]) == (0, False)
    reader = await counter.key(Role.SUBMITTER, platform_id="ddh")
    assert (await counter.get(f"{STORAGE}/cleanup", by=reader)).status_code == 403
