"""The handlers that come with geomill, one step per file. Each uses only the SDK."""
