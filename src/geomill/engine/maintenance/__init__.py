"""Duties beside the main loop. One duty, one file."""
