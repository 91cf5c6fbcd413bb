"""Assets: what operators ask about them, and what is outside of them beside their files."""

from geomill.handlers.assets import publish_outside, report_stuck, withdraw_outside

__all__ = ["publish_outside", "report_stuck", "withdraw_outside"]
