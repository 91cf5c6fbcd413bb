"""The domain without any input or output: `engine` runs workflows, `assets` are published, `access` says who sees them.

Modules of this folder itself serve all three.
"""
