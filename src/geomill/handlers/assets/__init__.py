"""Handlers for assets: reports, extracts, and the database side of exports, withdrawals and deletions."""

from geomill.handlers.assets import (
    drop_tables,
    plan_export,
    publish_outside,
    report_stuck,
    withdraw_outside,
    write_extract,
)

__all__ = ["drop_tables", "plan_export", "publish_outside", "report_stuck", "withdraw_outside", "write_extract"]
