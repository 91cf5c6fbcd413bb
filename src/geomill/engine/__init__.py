"""Orchestrators: they claim jobs, evaluate graphs and dispatch what is ready. Any number may run at once."""
