"""Orchestrators, which claim jobs, evaluate them and dispatch tasks. Any number of them may run at once."""
