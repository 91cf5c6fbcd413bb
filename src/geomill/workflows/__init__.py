"""Reads, checks, finds and draws workflow files."""
