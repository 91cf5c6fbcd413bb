"""All that a handler author imports."""

from geomill.sdk.context import HandlerContext, SavedCheckpoint
from geomill.sdk.registration import register_handler
from geomill.sdk.result import HandlerError, HandlerResult

__all__ = ["HandlerContext", "HandlerError", "HandlerResult", "SavedCheckpoint", "register_handler"]
