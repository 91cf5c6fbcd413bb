"""Features and vector tiles."""
