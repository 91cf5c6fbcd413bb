"""Requests and responses of the HTTP API, as data. Gateway and client share them, so that they cannot drift apart."""
