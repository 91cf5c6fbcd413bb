"""Handlers for files: publish them unchanged, export them, withdraw them."""

from geomill.handlers.blob import delete_data, export_file, publish_file, settle, withdraw, write_manifest

__all__ = ["delete_data", "export_file", "publish_file", "settle", "withdraw", "write_manifest"]
