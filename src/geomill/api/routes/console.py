"""The console's files: one page for every address of the console, and the scripts, styles and data that it loads.

They are built by `script/console` into `geomill/console_files`. The page loads nothing from other hosts, except a base
map that the settings name.
"""

from __future__ import annotations

import mimetypes
from functools import cache
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from fastapi import Path as InPath
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response

import geomill
from geomill.api.gateway import TheGateway
from geomill.errors import NotFoundError

router = APIRouter(include_in_schema=False)

FOLDER = Path(geomill.__file__).with_name("console_files")
BUILT = "files/"
"""The folder of built files. It must not be the beginning of a screen's address, such as `assets/`."""
FOREVER = "public, max-age=31536000, immutable"
MISSING = """<!doctype html><html lang="en"><title>geomill</title><p>The console is not built here. Run
<code>script/setup</code> with Node.js 18 or newer, or install a wheel of geomill. <a href="/docs">The API</a> is here.
"""


def policy(base_map_url: str | None) -> str:
    """Return the Content-Security-Policy of the console."""
    parts = urlsplit(base_map_url or "")
    elsewhere = f" {parts.scheme}://{parts.netloc}" if base_map_url else ""
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            f"img-src 'self' data: blob:{elsewhere}",
            f"connect-src 'self'{elsewhere}",
            "worker-src 'self'",
            "font-src 'self'",
            "manifest-src 'self'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    )


@cache
def files(folder: Path) -> frozenset[str]:
    """Return the names of the files that may be sent. A name in a request is only ever compared with them."""
    return frozenset(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@router.get("/")
async def lead_to_console() -> RedirectResponse:
    return RedirectResponse("console")


@router.get("/console")
async def show_console(gateway: TheGateway) -> Response:
    return _page(gateway.sessions.settings.base_map_url)


@router.get("/console/{path:path}")
async def get_console_file(
    gateway: TheGateway, request: Request, path: Annotated[str, InPath(max_length=500)]
) -> Response:
    """Return a file of the console, or its page: the page itself knows the addresses that people see."""
    if path.startswith(BUILT):
        return _built(path, compressed="gzip" in request.headers.get("accept-encoding", ""))
    return _page(gateway.sessions.settings.base_map_url)


def _page(base_map_url: str | None) -> Response:
    headers = {
        "Content-Security-Policy": policy(base_map_url),
        "Cache-Control": "no-cache",
        "Cross-Origin-Opener-Policy": "same-origin",
        **_HARDENING,
    }
    if "index.html" not in files(FOLDER):
        return HTMLResponse(MISSING, status_code=503, headers=headers)
    return FileResponse(FOLDER / "index.html", media_type="text/html; charset=utf-8", headers=headers)


def _built(path: str, *, compressed: bool) -> Response:
    if path not in files(FOLDER) or path.endswith(".gz"):
        raise NotFoundError(
            f"the console has no file '{path}'", remedy="reload the page: it may be of an earlier release"
        )
    headers = {"Cache-Control": FOREVER, "Vary": "Accept-Encoding", **_HARDENING}
    media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
    if path.endswith(".mjs"):
        media_type = "text/javascript"
    if compressed and f"{path}.gz" in files(FOLDER):
        return FileResponse(
            FOLDER / f"{path}.gz", media_type=media_type, headers={**headers, "Content-Encoding": "gzip"}
        )
    return FileResponse(FOLDER / path, media_type=media_type, headers=headers)


_HARDENING = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"}
