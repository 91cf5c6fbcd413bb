"""The source of both clients."""
