"""Tokens of managed identities of Azure, and the database passwords that are such tokens."""
