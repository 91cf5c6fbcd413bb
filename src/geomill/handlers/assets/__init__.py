"""Handlers for assets: reports, and the database side of exports, withdrawals and deletions."""

from geomill.handlers.assets import drop_tables, plan_export, publish_outside, report_stuck, withdraw_outside

__all__ = ["drop_tables", "plan_export", "publish_outside", "report_stuck", "withdraw_outside"]
