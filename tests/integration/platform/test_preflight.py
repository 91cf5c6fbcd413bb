"""A look at the source before an order is accepted."""

from __future__ import annotations

import asyncio

import pytest

from geomill.domain.assets.asset import DataType
from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import InvalidName, SourceError, UnavailableError
from geomill.platform import preflight


async def put(office, name: str, content: bytes) -> None:
    await office.storage.put_bytes(ObjectName(Zone.BRONZE, "uploads", name), content)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "upload it to the bronze zone first"),
        (b"", "is empty"),
        (b'{"type": "FeatureCollection"}', "data_type=vector"),
        (b"%PDF-1.7", "does not hold raster data"),
        (b"<!DOCTYPE html>", "a web page"),
    ],
)
async def test_a_source_that_cannot_be_it_is_refused(office, content, says):
    if content is not None:
        await put(office, "x.tif", content)
    with pytest.raises(SourceError, match=says) as caught:
        await office.submit(file_names=["x.tif"])
    assert caught.value.problems[0].where == "file_name"
    assert await office.rows("SELECT FROM app.geospatial_assets") == []


@pytest.mark.parametrize("name", ["climate.zarr", "climate.zarr/rain/.zarray"])
async def test_a_folder_of_zarr_is_named_by_its_root(office, name):
    for part in ("zarr.json", ".zgroup", "rain/.zarray"):
        await put(office, f"climate.zarr/{part}", b"{}")
    with pytest.raises(SourceError, match=r"by its file zarr\.json or \.zgroup"):
        await office.submit(file_names=[name])
    for root in ("climate.zarr/zarr.json", "climate.zarr/.zgroup"):
        with pytest.raises(SourceError, match="does not hold vector data"):
            await office.submit(file_names=[root], data_type=DataType.VECTOR)
    assert (await office.submit(file_names=["climate.zarr/.zgroup"])).warnings == []


async def test_an_unknown_kind_is_left_to_the_workflow(office):
    await put(office, "x.grid", b"ncols 4\n")
    assert (await office.submit(file_names=["x.grid"])).warnings == []


async def test_a_zip_may_hold_either(office):
    await put(office, "x.zip", b"PK\x03\x04....")
    await office.submit(file_names=["x.zip"], data_type=DataType.VECTOR)


@pytest.mark.parametrize(
    ("container", "name"),
    [
        ("../etc", "passwd"),
        ("uploads", "../../etc/passwd"),
        ("uploads", "/etc/passwd"),
        ("uploads", "a\x00b"),
        ("uploads", "a//b"),
        ("https://evil.example", "x"),
    ],
)
async def test_names_lead_nowhere_else(office, container, name):
    with pytest.raises(InvalidName):
        await office.submit(container_name=container, file_names=[name])


@pytest.mark.parametrize("trouble", ["slow", "down"])
async def test_a_store_that_does_not_answer_keeps_nobody_waiting(office, monkeypatch, trouble):
    async def stat(_name: ObjectName) -> None:
        if trouble == "down":
            raise UnavailableError("the store is down")
        await asyncio.sleep(60)

    monkeypatch.setattr(preflight, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(office.storage, "stat", stat)
    accepted = await office.submit()
    assert "did not answer in time" in accepted.warnings[0]
