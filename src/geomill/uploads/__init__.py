"""Uploads into bronze: opened within a platform's limits, received in steps that survive a crash, removed when old."""
