"""Messages between gateway, orchestrators and workers."""
