"""Ready-to-use links to an asset, signed with a ticket if the asset is not public."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote

from geomill.domain.access.signed_link import PARAMETER, LinkKey
from geomill.domain.assets.asset import Asset, DataType
from geomill.domain.assets.inventory import within_revision
from geomill.domain.assets.served import part_of

MATRIX = "WebMercatorQuad"


@dataclass(frozen=True, slots=True)
class AssetLinks:
    links: dict[str, str]
    expires_at: datetime | None = None
    """When the tickets expire; None if the links have none."""
    public: dict[str, str] = field(default_factory=dict)
    """Links to the public revision, which need no credential."""


@dataclass(frozen=True, slots=True)
class Links:
    """Builds links. `base` is the gateway's address; without it links begin with the address of the request. `outside`
    is the external server's address, if there is one. Without a `key` links are not signed."""

    base: str = ""
    key: LinkKey | None = None
    seconds: int = 86_400
    outside: str = ""

    def of(self, asset: Asset, now: datetime, called: str, seconds: int | None = None) -> AssetLinks:
        """Return the links of an asset, which are empty if it is not served. Links to the public revision lead to the
        external server once it is exported. `called` is the address of the request."""
        base = self.base or called.rstrip("/")
        if not asset.active or asset.served_revision is None:
            return AssetLinks({})
        exported = asset.public_revision is not None and asset.external_revision == asset.public_revision
        public_base = self.outside if self.outside and exported else base
        public = _addresses(asset, public_base) if asset.public_revision is not None else {}
        if asset.public_revision == asset.served_revision:
            return AssetLinks(public, public=public)
        if asset.data_type is DataType.RASTER:
            public.pop("download", None)  # it would be the file of the newer revision
        if self.key is None:
            return AssetLinks(_addresses(asset, base), public=public)
        end = int(now.timestamp()) + (seconds or self.seconds)
        ticket = f"{PARAMETER}={self.key.ticket(asset.asset_id, end, asset.withdrawn_through)}"
        return AssetLinks(_addresses(asset, base, ticket), datetime.fromtimestamp(end, UTC), public)


def _addresses(asset: Asset, base: str, ticket: str = "") -> dict[str, str]:
    """Return the addresses. A ticket opens the STAC item by the asset's id, because it is for one asset."""
    paths = _raster(asset) if asset.data_type is DataType.RASTER else _vector(asset)
    collection, item = quote(asset.stac_collection_id, safe=""), quote(asset.stac_item_id, safe="")
    stac_item = f"/stac/assets/{asset.asset_id}" if ticket else f"/stac/collections/{collection}/items/{item}"
    wms = {"wms": f"/wms/{asset.asset_id}"} if paths else {}
    paths = {"stac_item": stac_item, "viewer": f"/viewer/{asset.asset_id}", **paths, **wms}
    return {name: base + _with_ticket(path, ticket) for name, path in paths.items()}


def _with_ticket(path: str, ticket: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}{ticket}" if ticket else path


def _raster(asset: Asset) -> dict[str, str]:
    if not asset.blob_path:
        return {}
    start = f"/raster/assets/{asset.asset_id}"
    return {
        "tilejson": f"{start}/{MATRIX}/tilejson.json",
        "tiles": f"{start}/tiles/{MATRIX}/{{z}}/{{x}}/{{y}}",
        "wmts": f"{start}/WMTSCapabilities.xml",
        "preview": f"{start}/preview.png",
        **_file(asset),
    }


def _file(asset: Asset) -> dict[str, str]:
    """Return the address of the file, if the raster is one file and the link is not for an earlier revision."""
    assert asset.blob_path is not None
    outputs = asset.outputs or {}
    paths = [file.get("path") for file in outputs.get("files") or () if isinstance(file, dict)]
    single = not asset.blob_path.endswith("mosaic.json") and "scenes" not in outputs
    if not single or asset.blob_path.partition("/")[2] not in paths:
        return {}
    path = quote(within_revision(asset.blob_path))
    return {"download": f"/stac/files/{asset.asset_id}/{asset.served_revision}/{path}"}


def _vector(asset: Asset) -> dict[str, str]:
    if not asset.table_name:
        return {}
    start = f"/vector/collections/{asset.asset_id}"
    tables = [table["table_name"] for table in (asset.outputs or {}).get("tables") or ()]
    parts = [part_of(name, asset.table_name) for name in tables if name != asset.table_name]
    return {
        "features": f"{start}/items",
        "collection": start,
        "tilejson": f"{start}/tiles/{MATRIX}/tilejson.json",
        "tiles": f"{start}/tiles/{MATRIX}/{{z}}/{{x}}/{{y}}",
        "download": f"{start}/download?f=gpkg",
        **{f"features_{part}": f"{start}.{part}/items" for part in parts},
        **{f"tilejson_{part}": f"{start}.{part}/tiles/{MATRIX}/tilejson.json" for part in parts},
    }
