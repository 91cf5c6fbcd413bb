"""HTML pages: the list of assets and a map of each."""
