"""Duties of an orchestrator beside its main loop, one per file."""
