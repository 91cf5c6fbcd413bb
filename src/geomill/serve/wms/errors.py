"""Errors of WMS, which are XML documents with codes of the standard."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from starlette.responses import Response

NAMESPACE = "http://www.opengis.net/ogc"


class ServiceException(Exception):  # noqa: N818  the name in the standard
    """A request that WMS refuses. `code` is one of the standard, or empty."""

    def __init__(self, message: str, code: str = "", locator: str = "", status: int = 400) -> None:
        super().__init__(message)
        self.code, self.locator, self.status = code, locator, status


def respond(error: ServiceException, version: str) -> Response:
    code = f" code={quoteattr(error.code)}" if error.code else ""
    locator = f" locator={quoteattr(error.locator)}" if error.locator else ""
    namespace = f' xmlns="{NAMESPACE}"' if version == "1.3.0" else ""
    text = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<ServiceExceptionReport version="{version}"{namespace}>'
        f"<ServiceException{code}{locator}>{escape(str(error))}</ServiceException></ServiceExceptionReport>\n"
    )
    media_type = "text/xml" if version == "1.3.0" else "application/vnd.ogc.se_xml"
    return Response(text, status_code=error.status, media_type=media_type, headers={"Cache-Control": "no-store"})
