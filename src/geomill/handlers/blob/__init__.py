"""Files: publish them as they are, copy them outside, take them back."""

from geomill.handlers.blob import delete_data, export_file, publish_file, settle, withdraw, write_manifest

__all__ = ["delete_data", "export_file", "publish_file", "settle", "withdraw", "write_manifest"]
