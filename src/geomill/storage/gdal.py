"""Paths of objects for GDAL, and the options that give it access."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from geomill.domain.location import AzureAccount, Folder, S3Bucket
from geomill.domain.objectname import ObjectName, Zone
from geomill.storage.connection_string import Connection
from geomill.storage.delegation import storage_token
from geomill.storage.recipe import StorageRecipe
from geomill.storage.stores import Stores

REMOTE = {
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "GDAL_HTTP_MERGE_CONSECUTIVE_RANGES": "YES",
    "GDAL_HTTP_MAX_RETRY": "5",
    "GDAL_HTTP_RETRY_DELAY": "1",
}


OFFLINE = {
    "GDAL_HTTP_PROXY": "http://127.0.0.1:1",
    "GDAL_HTTP_CONNECTTIMEOUT": "1",
    "GDAL_HTTP_TIMEOUT": "1",
    "GDAL_HTTP_MAX_RETRY": "0",
    "PROJ_NETWORK": "OFF",
}
"""Options for work on local files. GDAL has no switch to disable HTTP, so its requests go to a port without a
server."""


class GdalOptions(dict[str, str]):
    """Options for `rasterio.Env(**options)` or `--config`, for the duration of one task. rasterio takes the keys of S3
    only from a session whose `get_credential_options` returns them. `repr` shows no values, because some are secret."""

    def __repr__(self) -> str:
        return f"GdalOptions({', '.join(sorted(self))})"


def gdal_path(stores: Stores, name: ObjectName) -> str:
    shelf, key = stores.place(name)
    match shelf.location:
        case Folder(path):
            return str(path / key)
        case AzureAccount(_, prefix):
            return "/".join(filter(None, ("/vsiaz", name.container, prefix, name.path)))
        case S3Bucket(bucket, prefix):
            return "/".join(filter(None, ("/vsis3", bucket, prefix, key)))


def gdal_options(stores: Stores, recipe: StorageRecipe, zone: Zone, container: str | None = None) -> GdalOptions:
    """With a managed identity, the options are good for half a day for one container, and only to read. Without a
    container they are good for the whole account, for some minutes at least."""
    match stores.location(zone):
        case Folder():
            return GdalOptions()
        case AzureAccount(account, _):
            options = _azure(stores, recipe, account, container)
        case S3Bucket():
            options = _s3(recipe)
    limits = {"GDAL_HTTP_TIMEOUT": f"{recipe.timeout_seconds:g}", "GDAL_HTTP_CONNECTTIMEOUT": "5"}
    # rasterio names an authority of its own otherwise
    trust = {"GDAL_CURL_CA_BUNDLE": os.environ.get("CURL_CA_BUNDLE")}
    chosen = {**options, **trust}
    return GdalOptions({**REMOTE, **limits, **{name: value for name, value in chosen.items() if value is not None}})


def uses_identity(stores: Stores, zone: Zone) -> bool:
    location = stores.location(zone)
    return isinstance(location, AzureAccount) and stores.azure_connection(location.account).uses_identity


def _azure(stores: Stores, recipe: StorageRecipe, account: str, container: str | None) -> dict[str, str | None]:
    connection = stores.azure_connection(account)
    if connection.uses_identity:
        return _of_identity(stores, recipe, connection, container)
    if connection.text:
        return {"AZURE_STORAGE_CONNECTION_STRING": connection.text}
    return {
        "AZURE_STORAGE_ACCOUNT": account,
        "AZURE_STORAGE_ACCESS_KEY": connection.key,
        "AZURE_STORAGE_SAS_TOKEN": connection.sas_token,
    }


def _of_identity(
    stores: Stores, recipe: StorageRecipe, connection: Connection, container: str | None
) -> dict[str, str | None]:
    place = {"AZURE_STORAGE_ACCOUNT": connection.account, "CPL_AZURE_ENDPOINT": connection.endpoint}
    if container is None:
        return {**place, "AZURE_STORAGE_ACCESS_TOKEN": storage_token(recipe.azure.client_id).text}
    signature = stores.delegations.signature(connection.account, connection.blob_endpoint, container)
    return {**place, "AZURE_STORAGE_SAS_TOKEN": signature}


def _s3(recipe: StorageRecipe) -> dict[str, str | None]:
    s3 = recipe.s3
    options: dict[str, str | None] = {
        "AWS_ACCESS_KEY_ID": s3.key_id,
        "AWS_SECRET_ACCESS_KEY": s3.secret,
        "AWS_SESSION_TOKEN": s3.session_token,
        "AWS_REGION": s3.region,
    }
    if s3.endpoint:
        url = urlsplit(s3.endpoint)
        options |= {
            "AWS_S3_ENDPOINT": url.netloc + url.path.rstrip("/"),
            "AWS_HTTPS": "NO" if url.scheme == "http" else "YES",
            "AWS_VIRTUAL_HOSTING": "FALSE",
        }
    return options
