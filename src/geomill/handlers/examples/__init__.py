"""Small handlers to learn from, to test workflows with, and to imitate failures."""
