"""Workers, which lease tasks, run handlers and report."""
