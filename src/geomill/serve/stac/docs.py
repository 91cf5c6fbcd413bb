"""The API documentation for browsers. The page loads nothing from other hosts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import FileResponse, HTMLResponse

from geomill.api.routes.docs import FILES, FOLDER
from geomill.errors import NotFoundError

router = APIRouter(include_in_schema=False)
POLICY = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"


@router.get("/api.html", name="swagger_ui_html")
async def show() -> HTMLResponse:
    page = get_swagger_ui_html(
        openapi_url="api",
        title="geomill: STAC API",
        swagger_js_url="api-page/swagger-ui-bundle.js",
        swagger_css_url="api-page/swagger-ui.css",
        swagger_favicon_url="api-page/favicon.png",
    )
    page.headers["Content-Security-Policy"] = POLICY
    return page


@router.get("/api-page/{file}")
async def get_file(file: Annotated[str, InPath(max_length=40)]) -> FileResponse:
    if file not in FILES:
        raise NotFoundError("the file does not exist; the documentation is at api.html")
    return FileResponse(FOLDER / file, media_type=FILES[file], headers={"Cache-Control": "max-age=86400"})
