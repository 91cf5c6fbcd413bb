"""Workflows, jobs and tasks: their models, graphs, checks and the evaluator."""
