"""Services for published data: the catalogue, tiles, features and a viewer."""
