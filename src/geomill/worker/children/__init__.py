"""Processes for isolated handlers: started ahead, used for many tasks, replaced when worn or broken."""
