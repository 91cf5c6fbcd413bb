"""What is asked about assets now and then."""

from geomill.handlers.assets import report_stuck

__all__ = ["report_stuck"]
