"""Looks into a file before it is accepted: its format, layers, columns or bands, and all of its problems at once.

`task.py` is a handler that only gateways and the command line run, in a child process with limits of time and memory:
see `geomill.platform.inspector`. It uses the same code as the validation of a job, but goes on after a problem, and
reads only the beginning of a large file.
"""
