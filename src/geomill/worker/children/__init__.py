"""Child processes for isolated handlers. They are started ahead, used for many tasks, and replaced when worn."""
