"""geomill: a geospatial publishing platform. Start reading at ARCHITECTURE.md."""

__version__ = "0.1.0"
