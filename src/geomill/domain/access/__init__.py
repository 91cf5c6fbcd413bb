"""Credentials and visibility: keys, principals, signed links, database roles, and the rule for who sees an asset."""
