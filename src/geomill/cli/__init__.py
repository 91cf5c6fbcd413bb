"""The command line. Each command is thin: it reads its settings, calls the package that does the work, and prints."""
