"""One file for each noun of the API."""
