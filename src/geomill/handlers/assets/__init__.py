"""Assets: what operators ask about them, and what is outside of them beside their files."""

from geomill.handlers.assets import drop_tables, plan_export, publish_outside, report_stuck, withdraw_outside

__all__ = ["drop_tables", "plan_export", "publish_outside", "report_stuck", "withdraw_outside"]
