"""Assets: their revisions and requests, the platforms they come from, and the decisions about them."""
