"""Builds responses from what the platform returns."""
