"""Handlers for files: publish them unchanged, export them, withdraw them."""

from geomill.handlers.blob import (
    accept_files,
    copy_by_pipeline,
    delete_data,
    export_file,
    publish_file,
    settle,
    stop_pipelines,
    withdraw,
    write_manifest,
)

__all__ = [
    "accept_files",
    "copy_by_pipeline",
    "delete_data",
    "export_file",
    "publish_file",
    "settle",
    "stop_pipelines",
    "withdraw",
    "write_manifest",
]
