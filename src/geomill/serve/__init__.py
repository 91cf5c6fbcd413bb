"""What was published, for the tools that people have: the catalogue, tiles and features."""
