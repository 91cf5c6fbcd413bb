"""Stage jobs that geomill carries."""
