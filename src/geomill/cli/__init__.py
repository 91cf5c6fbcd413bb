"""The command line. Thin: each command reads its settings, calls what does the work, and prints."""
