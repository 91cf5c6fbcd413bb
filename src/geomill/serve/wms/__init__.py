"""WMS 1.3.0 and 1.1.1 for rasters and vectors, because desktop GIS still ask for it."""
