"""Credentials and visibility: keys, principals, signed links, database roles, and the rule of who sees an asset."""
