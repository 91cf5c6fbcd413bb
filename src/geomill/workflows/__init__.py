"""Workflow files: reading, checking, finding and drawing them."""
