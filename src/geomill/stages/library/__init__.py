"""Stage jobs that come with geomill."""
