"""The handlers that geomill carries. One step per file; each knows only the SDK."""
