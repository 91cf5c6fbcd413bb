"""Workers: they lease tasks, run handlers and report."""
