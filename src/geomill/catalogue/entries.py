"""The catalogue entry of an asset: the STAC item of its revision, and the side items beside it. Pure functions.

A workflow returns `stac_item`, perhaps `stac_items` and `stac_collection`, as outputs of its job. An entry is made of
them: geomill sets identity, revision, visibility, links and the places of files, and keeps everything else. Places are
relative to the root of the STAC API.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from geomill.catalogue.styling import with_styles
from geomill.domain.assets.metadata import METADATA_OUTPUT, OTHER_LICENCES, DatasetMetadata
from geomill.domain.assets.style import StyleBook

Document = dict[str, Any]

VERSION_EXTENSION = "https://stac-extensions.github.io/version/v1.2.0/schema.json"
GEOJSON = "application/geo+json"
SHARED_PROPERTIES = (
    "geomill:asset_id",
    "geomill:revision",
    "geomill:platform",
    "geomill:approval",
    "geomill:clearance",
    "geomill:public",
    "version",
    "deprecated",
)
"""The properties that a side item has in common with its main item."""
SHARED_METADATA = ("license", "keywords", "providers", "attribution")
COLLECTION_FIELDS = ("license", "keywords", "providers")
_SIDE_NAME = re.compile(r"[^/:\s]+")


class InvalidEntry(ValueError):  # noqa: N818
    """An item that a workflow made cannot be stored. The message says which one and why."""


@dataclass(frozen=True, slots=True)
class ShownAsset:
    """An asset, with the revision that the catalogue shows of it."""

    asset_id: str
    platform_id: str
    data_type: str
    collection_id: str
    item_id: str
    revision: int | None
    """None if the catalogue shows nothing of the asset."""
    outputs: Mapping[str, Any] | None
    table_name: str | None
    blob_path: str | None
    public: bool
    approval: str
    clearance: str
    revision_before: int | None = None
    """The revision to which the link `predecessor-version` leads."""
    has_series: bool = False
    """Whether a revision of the asset has side items."""
    own_styles: Mapping[str, Any] | None = None
    """The styles that people gave the asset."""

    @property
    def styles(self) -> StyleBook:
        return StyleBook.of((self.outputs or {}).get("styles"), self.own_styles)


@dataclass(frozen=True, slots=True)
class Entry:
    """The items that the catalogue has of one asset. Without items, the catalogue shows nothing of the asset."""

    asset_id: str
    platform_id: str
    collection_id: str
    item_id: str
    has_series: bool
    items: list[Document]
    """The main item first."""
    collection: Document
    """The document of the collection, for the case that it does not exist yet."""


def entry_of(asset: ShownAsset) -> Entry:
    """Returns the entry of an asset. Raises `InvalidEntry` if a workflow made an item that cannot be stored."""
    items: list[Document] = []
    outputs = asset.outputs or {}
    if asset.revision is not None and isinstance(outputs.get("stac_item"), dict):
        main = main_item(asset, asset.revision)
        items = [main, *side_items(main, outputs)]
    return Entry(
        asset.asset_id,
        asset.platform_id,
        asset.collection_id,
        asset.item_id,
        asset.has_series,
        items,
        collection_document(asset.collection_id, outputs),
    )


def main_item(asset: ShownAsset, revision: int) -> Document:
    """Returns the item of a revision of an asset."""
    outputs = asset.outputs or {}
    _check(outputs["stac_item"], asset.item_id)
    item = _revision_item(
        outputs["stac_item"], asset.asset_id, revision, asset.revision_before, asset.collection_id, asset.item_id
    )
    if not ("scenes" in outputs and asset.blob_path is None):  # each scene has a map of its own
        item["links"] += _map_links(asset.asset_id, raster=asset.data_type == "raster")
    item["assets"] |= _layer_assets(asset.asset_id, asset.table_name, outputs)
    item["properties"] = {
        **item["properties"],
        **described_properties(outputs),
        "geomill:asset_id": asset.asset_id,
        "geomill:revision": revision,
        "geomill:platform": asset.platform_id,
        "geomill:approval": "approved" if asset.public else asset.approval,
        "geomill:clearance": "public" if asset.public else asset.clearance,
        "geomill:public": asset.public,
        "version": str(revision),
        "deprecated": False,
    }
    return with_styles(item, asset.asset_id, asset.styles)


def side_items(main: Mapping[str, Any], outputs: Mapping[str, Any]) -> list[Document]:
    """Returns the items of `outputs.stac_items`. A side item has the id of the main item, a dot, and its own id; it
    shares revision and visibility with the main item."""
    sources = outputs.get("stac_items")
    if not isinstance(sources, list):
        return []
    names = [_side_name(source) for source in sources]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InvalidEntry(f"two items of stac_items have the same id: '{twice[0]}'")
    scenes = outputs.get("scenes")
    return [
        _side_item(source, name, main, has_map=isinstance(scenes, dict) and name in scenes)
        for source, name in zip(sources, names, strict=True)
    ]


def version_item(
    item: Mapping[str, Any],
    *,
    asset_id: str,
    platform_id: str,
    collection_id: str,
    item_id: str,
    revision: int,
    shown_revision: int | None,
    revision_before: int | None,
    metadata: Mapping[str, Any] | None = None,
) -> Document:
    """Returns the item of a revision beside the one that the catalogue shows. It has the files of that revision.
    Features, whose address begins with a slash, are left out: they are served of the latest revision only. Raises
    `InvalidEntry` if the item cannot be stored."""
    _check(item, item_id)
    version = _revision_item(item, asset_id, revision, revision_before, collection_id, item_id)
    version["links"].append({"rel": "latest-version", "type": GEOJSON, "href": _place(collection_id, item_id)})
    version["assets"] = {
        name: asset for name, asset in version["assets"].items() if not str(asset.get("href", "")).startswith("/")
    }
    version["properties"] = {
        **version["properties"],
        **described_properties({METADATA_OUTPUT: metadata}),
        "geomill:asset_id": asset_id,
        "geomill:revision": revision,
        "geomill:platform": platform_id,
        "version": str(revision),
        "deprecated": shown_revision is None or revision < shown_revision,
    }
    return version


def collection_document(collection_id: str, outputs: Mapping[str, Any]) -> Document:
    """Returns the document of a collection that is created for the first item in it, whose licence, keywords and
    providers it takes. Title and description are of the item alone."""
    made_by_workflow = outputs.get("stac_collection")
    described = described_properties(outputs)
    return {
        "stac_version": "1.1.0",
        "license": "other",
        "description": f"Assets of {collection_id}",
        **(made_by_workflow if isinstance(made_by_workflow, dict) else {}),
        **{name: described[name] for name in COLLECTION_FIELDS if name in described},
    }


def described_properties(outputs: Mapping[str, Any]) -> Document:
    """Returns the properties that the submitter's metadata gives to an item, under their names in STAC."""
    metadata = DatasetMetadata.stored(outputs.get(METADATA_OUTPUT))
    properties = metadata.to_json()
    properties.pop("temporal_extent", None)
    if metadata.license in OTHER_LICENCES:
        properties["license"] = "other"  # STAC 1.1 has one word for licences without an identifier
    return {**properties, **({"datetime": None, **metadata.times} if metadata.times else {})}


def _revision_item(
    source: Mapping[str, Any], asset_id: str, revision: int, before: int | None, collection_id: str, item_id: str
) -> Document:
    """The workflow's item with the names, places of files and links between versions that every item has."""
    assets = source.get("assets") or {}
    links = []
    if before is not None:
        place = f"{_place(collection_id, item_id)}/versions/{before}"
        links.append({"rel": "predecessor-version", "type": GEOJSON, "href": place})
    extensions = [name for name in source.get("stac_extensions") or [] if name != VERSION_EXTENSION]
    return {
        **source,
        "type": "Feature",
        "id": item_id,
        "collection": collection_id,
        "stac_extensions": [*extensions, VERSION_EXTENSION],
        "assets": {name: _placed(asset, f"files/{asset_id}/{revision}/") for name, asset in assets.items()},
        "links": links,
    }


def _check(source: Mapping[str, Any], item_id: str) -> None:
    """Refuses an item that pgstac could not store."""
    if not isinstance(source.get("geometry"), dict):
        raise InvalidEntry(f"the item '{item_id}' has no geometry")
    properties = source.get("properties")
    if not isinstance(properties, dict):
        raise InvalidEntry(f"the item '{item_id}' has no properties")
    if not (properties.get("datetime") or (properties.get("start_datetime") and properties.get("end_datetime"))):
        raise InvalidEntry(f"the item '{item_id}' has neither datetime nor both start_datetime and end_datetime")
    assets = source.get("assets") or {}
    if not (isinstance(assets, dict) and all(isinstance(asset, dict) for asset in assets.values())):
        raise InvalidEntry(f"the assets of the item '{item_id}' are not objects by name")
    if not isinstance(source.get("stac_extensions") or [], list):
        raise InvalidEntry(f"the stac_extensions of the item '{item_id}' are not a list")


def _placed(asset: Mapping[str, Any], folder: str) -> Document:
    """An asset of an item whose place is relative to the folder of its revision."""
    href = asset.get("href")
    if isinstance(href, str) and href.startswith("./"):
        return {**asset, "href": folder + href.removeprefix("./")}
    return dict(asset)


def _side_name(source: Any) -> str:
    name = source.get("id") if isinstance(source, dict) else None
    text = str(name) if isinstance(name, str | int) else ""
    if not _SIDE_NAME.fullmatch(text):
        raise InvalidEntry("an item of stac_items has no id, or one with a slash, a colon or a space in it")
    return text


def _side_item(source: Mapping[str, Any], name: str, main: Mapping[str, Any], *, has_map: bool) -> Document:
    properties, collection_id = main["properties"], main["collection"]
    asset_id, revision = properties["geomill:asset_id"], properties["geomill:revision"]
    _check(source, name)
    item = _revision_item(source, asset_id, revision, None, collection_id, f"{main['id']}.{name}")
    item["links"].append(
        {"rel": "related", "type": GEOJSON, "title": "The whole", "href": _place(collection_id, main["id"])}
    )
    if has_map:
        item["links"] += _map_links(f"{asset_id}.{name}", raster=True)
    shared = (*SHARED_PROPERTIES, *(name for name in SHARED_METADATA if name in properties))
    item["properties"] = {**item["properties"], **{name: properties[name] for name in shared}}
    return item


def _map_links(name: str, *, raster: bool) -> list[Document]:
    """Links to a map for people and to tiles for programs. Both lie beside the STAC API."""
    tiles = (
        f"../raster/assets/{name}/WebMercatorQuad/tilejson.json"
        if raster
        else f"../vector/collections/{name}/tiles/WebMercatorQuad/tilejson.json"
    )
    return [
        {"rel": "alternate", "type": "text/html", "title": "Map", "href": f"../viewer/{name}"},
        {"rel": "tilejson", "type": "application/json", "title": "Tiles", "href": tiles},
    ]


def _layer_assets(asset_id: str, table_name: str | None, outputs: Mapping[str, Any]) -> Document:
    """Item assets for the tables beside the main one, of a layer that was split by its kinds of geometry."""
    tables = outputs.get("tables")
    if table_name is None or not isinstance(tables, list):
        return {}
    names = [table.get("table_name") for table in tables if isinstance(table, dict)]
    parts = [name.removeprefix(f"{table_name}_") for name in names if isinstance(name, str) and name != table_name]
    return {
        f"features_{part}": {
            "href": f"/vector/collections/{asset_id}.{part}/items",
            "type": GEOJSON,
            "title": f"OGC API Features: {part}",
            "roles": ["data"],
        }
        for part in parts
    }


def _place(collection_id: str, item_id: str) -> str:
    return f"collections/{collection_id}/items/{item_id}"
