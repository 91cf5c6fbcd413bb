"""The API documentation for browsers. All files come from this gateway: a page that shows keys must not load anything
from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import fastapi_offline
from fastapi import APIRouter
from fastapi import Path as InPath
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import FileResponse, HTMLResponse

from geomill.errors import NotFoundError

router = APIRouter(include_in_schema=False)

FOLDER = Path(fastapi_offline.__file__).with_name("static")
FILES = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon.png": "image/png",
}


@router.get("/docs")
async def show() -> HTMLResponse:
    page = get_swagger_ui_html(
        openapi_url="openapi.json",
        title="geomill",
        swagger_js_url="docs/swagger-ui-bundle.js",
        swagger_css_url="docs/swagger-ui.css",
        swagger_favicon_url="docs/favicon.png",
    )
    page.headers["Content-Security-Policy"] = (
        "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
    )
    return page


@router.get("/docs/{file}")
async def get_file(file: Annotated[str, InPath(max_length=40)]) -> FileResponse:
    if file not in FILES:
        raise NotFoundError("the file does not exist; the documentation is at /docs")
    return FileResponse(FOLDER / file, media_type=FILES[file], headers={"Cache-Control": "max-age=86400"})
