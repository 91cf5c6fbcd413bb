"""Small handlers for learning, for testing workflows and for simulating failures."""
