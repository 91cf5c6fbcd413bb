"""Catalogue entries, built from the outputs of a job."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomill.catalogue.entries import (
    SHARED_PROPERTIES,
    VERSION_EXTENSION,
    InvalidEntry,
    ShownAsset,
    collection_document,
    entry_of,
    version_item,
)

ITEM: dict[str, Any] = {
    "type": "Feature",
    "stac_version": "1.1.0",
    "id": "named by the workflow",
    "geometry": {"type": "Point", "coordinates": [10.0, 50.0]},
    "bbox": [10.0, 50.0, 10.0, 50.0],
    "properties": {"datetime": "2024-04-17T00:00:00Z", "title": "Floods"},
    "links": [{"rel": "self", "href": "nowhere"}],
    "assets": {
        "data": {"href": "./a.tif", "type": "image/tiff"},
        "features": {"href": "/vector/collections/a1/items"},
        "elsewhere": {"href": "https://example.com/b.tif"},
    },
}
RASTER = ShownAsset(
    asset_id="a1",
    platform_id="ddh",
    data_type="raster",
    collection_id="floods",
    item_id="floods-jakarta-v1",
    revision=2,
    outputs={"stac_item": ITEM},
    table_name=None,
    blob_path="cogs/a.tif",
    public=False,
    approval="pending_review",
    clearance="uncleared",
)


def with_outputs(**outputs: Any) -> ShownAsset:
    return replace(RASTER, outputs={"stac_item": ITEM, **outputs})


def side(name: Any, **changes: Any) -> dict[str, Any]:
    return {**ITEM, "id": name, **changes}


def test_the_workflow_s_item_gets_identity_places_and_links() -> None:
    before = copy.deepcopy(ITEM)
    entry = entry_of(replace(RASTER, revision_before=1))
    (item,) = entry.items
    assert before == ITEM, "the outputs of the asset stay as they are"
    assert (item["id"], item["collection"], item["type"]) == ("floods-jakarta-v1", "floods", "Feature")
    assert (item["geometry"], item["bbox"], item["stac_version"]) == (ITEM["geometry"], ITEM["bbox"], "1.1.0")
    assert item["stac_extensions"] == [VERSION_EXTENSION]
    assert {name: asset["href"] for name, asset in item["assets"].items()} == {
        "data": "files/a1/2/a.tif",
        "features": "/vector/collections/a1/items",
        "elsewhere": "https://example.com/b.tif",
    }
    assert [(link["rel"], link["href"]) for link in item["links"]] == [
        ("predecessor-version", "collections/floods/items/floods-jakarta-v1/versions/1"),
        ("alternate", "../viewer/a1"),
        ("tilejson", "../raster/assets/a1/WebMercatorQuad/tilejson.json"),
    ]
    assert item["properties"] == {
        "datetime": "2024-04-17T00:00:00Z",
        "title": "Floods",
        "geomill:asset_id": "a1",
        "geomill:revision": 2,
        "geomill:platform": "ddh",
        "geomill:approval": "pending_review",
        "geomill:clearance": "uncleared",
        "geomill:public": False,
        "version": "2",
        "deprecated": False,
    }


def test_a_public_revision_is_approved_whatever_a_newer_one_waits_for() -> None:
    (item,) = entry_of(replace(RASTER, public=True)).items
    assert [item["properties"][f"geomill:{name}"] for name in ("approval", "clearance", "public")] == [
        "approved",
        "public",
        True,
    ]


@pytest.mark.parametrize(
    "asset",
    [
        replace(RASTER, revision=None),
        replace(RASTER, outputs=None),
        replace(RASTER, outputs={}),
        replace(RASTER, outputs={"stac_item": None}),
        replace(RASTER, outputs={"stac_item": "item.json"}),
    ],
)
def test_without_a_shown_revision_or_an_item_there_is_nothing_to_show(asset: ShownAsset) -> None:
    entry = entry_of(asset)
    assert entry.items == []
    assert (entry.asset_id, entry.item_id, entry.collection_id) == ("a1", "floods-jakarta-v1", "floods")


def test_vectors_lead_to_their_own_tiles_and_to_every_table() -> None:
    names = ("rivers_r2", "rivers_r2_points", "other", 5)
    tables = [*({"table_name": name} for name in names), {}]
    vector = replace(with_outputs(tables=tables), data_type="vector", table_name="rivers_r2")
    (item,) = entry_of(vector).items
    assert item["links"][-1]["href"] == "../vector/collections/a1/tiles/WebMercatorQuad/tilejson.json"
    assert item["assets"]["features_points"] == {
        "href": "/vector/collections/a1.points/items",
        "type": "application/geo+json",
        "title": "OGC API Features: points",
        "roles": ["data"],
    }
    assert [name for name in item["assets"] if name.startswith("features_")] == ["features_points", "features_other"]


def test_side_items_share_revision_and_visibility_with_the_main_item() -> None:
    outputs = {"stac_items": [side("s1"), side(7)], "scenes": {"s1": {"blob_path": "cogs/s1.tif"}}}
    main, first, second = entry_of(replace(with_outputs(**outputs), blob_path=None)).items
    assert [first["id"], second["id"]] == ["floods-jakarta-v1.s1", "floods-jakarta-v1.7"]
    assert [link["rel"] for link in main["links"]] == [], "each scene has a map of its own"
    assert [link["rel"] for link in first["links"]] == ["related", "alternate", "tilejson"]
    assert first["links"][1]["href"] == "../viewer/a1.s1"
    assert [link["rel"] for link in second["links"]] == ["related"]
    for item in (first, second):
        assert {name: item["properties"][name] for name in SHARED_PROPERTIES} == {
            name: main["properties"][name] for name in SHARED_PROPERTIES
        }
        assert item["assets"]["data"]["href"] == "files/a1/2/a.tif"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"geometry": None}, "the item 'floods-jakarta-v1' has no geometry"),
        ({"properties": None}, "the item 'floods-jakarta-v1' has no properties"),
        ({"properties": {}}, "neither datetime nor both start_datetime and end_datetime"),
        ({"properties": {"start_datetime": "2024-01-01T00:00:00Z"}}, "neither datetime nor both"),
        ({"assets": ["a.tif"]}, "the assets of the item 'floods-jakarta-v1' are not objects by name"),
        ({"assets": {"data": "a.tif"}}, "the assets of the item 'floods-jakarta-v1' are not objects by name"),
        ({"stac_extensions": "x"}, "the stac_extensions of the item 'floods-jakarta-v1' are not a list"),
    ],
)
def test_an_item_that_cannot_be_stored_is_named(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidEntry, match=reason):
        entry_of(with_outputs(stac_item={**ITEM, **changes}))


@pytest.mark.parametrize(
    ("side_items", "reason"),
    [
        ([side("a"), side("a")], "two items of stac_items have the same id: 'a'"),
        ([side("7"), side(7)], "two items of stac_items have the same id: '7'"),
        ([side("a b")], "an item of stac_items has no id, or one with a slash, a colon or a space in it"),
        ([side("a/b")], "an item of stac_items has no id"),
        ([side(None)], "an item of stac_items has no id"),
        (["a.json"], "an item of stac_items has no id"),
        ([side("a", geometry=None)], "the item 'a' has no geometry"),
    ],
)
def test_a_side_item_that_cannot_be_stored_refuses_the_entry(side_items: list[Any], reason: str) -> None:
    with pytest.raises(InvalidEntry, match=reason):
        entry_of(with_outputs(stac_items=side_items))


def test_an_asset_of_an_item_may_have_no_place() -> None:
    (item,) = entry_of(with_outputs(stac_item={**ITEM, "assets": {"data": {"title": "to come"}}})).items
    assert item["assets"] == {"data": {"title": "to come"}}


@pytest.mark.parametrize(("shown", "deprecated"), [(3, True), (1, False), (None, True)])
def test_another_version_has_its_own_files_and_no_features(shown: int | None, deprecated: bool) -> None:
    item = version_item(
        ITEM,
        asset_id="a1",
        platform_id="ddh",
        collection_id="floods",
        item_id="i",
        revision=2,
        shown_revision=shown,
        revision_before=1,
    )
    assert set(item["assets"]) == {"data", "elsewhere"}
    assert item["assets"]["data"]["href"] == "files/a1/2/a.tif"
    assert [link["rel"] for link in item["links"]] == ["predecessor-version", "latest-version"]
    assert (item["properties"]["version"], item["properties"]["deprecated"]) == ("2", deprecated)


@pytest.mark.parametrize("changes", [{"properties": None}, {"assets": ["a.tif"]}, {"geometry": None}])
def test_a_version_that_cannot_be_stored_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidEntry, match=r"the .*item 'i'"):
        version_item(
            {**ITEM, **changes},
            asset_id="a1",
            platform_id="ddh",
            collection_id="floods",
            item_id="i",
            revision=2,
            shown_revision=3,
            revision_before=None,
        )


def test_the_workflow_describes_a_new_collection() -> None:
    plain = {"stac_version": "1.1.0", "license": "other", "description": "Assets of floods"}
    assert collection_document("floods", {}) == plain
    assert collection_document("floods", {"stac_collection": "floods.json"}) == plain
    described = collection_document("floods", {"stac_collection": {"license": "CC-BY-4.0", "keywords": ["water"]}})
    assert described == {**plain, "license": "CC-BY-4.0", "keywords": ["water"]}


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_outputs = st.fixed_dictionaries(
    {"stac_item": st.fixed_dictionaries({}, optional=dict.fromkeys(ITEM, _json)) | st.just(ITEM) | _json},
    optional=dict.fromkeys(("stac_items", "scenes", "tables", "stac_collection"), _json),
)


@given(outputs=_outputs, public=st.booleans())
def test_whatever_a_workflow_returns_is_an_entry_or_refused(outputs: Any, public: bool) -> None:
    asset = replace(RASTER, outputs=outputs, public=public, table_name="t")
    try:
        entry = entry_of(asset)
    except InvalidEntry:
        return
    for item in entry.items:
        assert item["collection"] == "floods"
        assert item["properties"]["geomill:public"] is public
    ids = [item["id"] for item in entry.items]
    assert len(ids) == len(set(ids))


METADATA: dict[str, Any] = {
    "title": "Floods of Jakarta",
    "license": "proprietary",
    "keywords": ["floods"],
    "providers": [{"name": "Acme", "roles": ["producer"]}],
    "temporal_extent": {"start": "2020-01-01T00:00:00Z", "end": "2020-12-31T00:00:00Z"},
    "attribution": "© Acme",
}


def test_the_submitters_metadata_is_in_items_and_collection() -> None:
    scene = {**ITEM, "id": "s1"}
    outputs = {"stac_item": ITEM, "stac_items": [scene], "dataset_metadata": METADATA}
    entry = entry_of(replace(RASTER, outputs=outputs))
    properties, side = entry.items[0]["properties"], entry.items[1]["properties"]
    assert (properties["title"], properties["license"], properties["attribution"]) == (
        "Floods of Jakarta",
        "other",
        "© Acme",
    )
    assert (properties["datetime"], properties["start_datetime"]) == (None, "2020-01-01T00:00:00Z")
    assert (side["title"], side["license"], side["providers"]) == ("Floods", "other", METADATA["providers"])
    assert side["datetime"] == "2024-04-17T00:00:00Z"  # a scene has its own time
    assert entry.collection["license"] == "other"
    assert entry.collection["keywords"] == ["floods"]
    assert "title" not in entry.collection


def test_an_earlier_version_has_its_own_metadata() -> None:
    version = version_item(
        ITEM,
        asset_id="a1",
        platform_id="ddh",
        collection_id="floods",
        item_id="floods-jakarta-v1",
        revision=1,
        shown_revision=2,
        revision_before=None,
        metadata=METADATA,
    )
    assert version["properties"]["title"] == "Floods of Jakarta"
