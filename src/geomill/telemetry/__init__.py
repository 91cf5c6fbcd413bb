"""Log lines of a process."""
