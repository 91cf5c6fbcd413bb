"""Azure Data Factory: starts, watches and cancels the runs of one pipeline, over its REST interface."""
