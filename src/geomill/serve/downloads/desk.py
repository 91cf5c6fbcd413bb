"""Makes downloads in child processes and sends them.

A child has a limit of memory, rows, bytes and time. A caller who goes away ends the child. The file is unlinked before
the first byte is sent, so that nothing is left behind however the answer ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from geomill.domain.access.confidential import new_reference
from geomill.downloads.order import DownloadOrder, DownloadOutcome, FeaturesOrder, PixelsOrder
from geomill.errors import DownloadTooLarge, UnavailableError

log = logging.getLogger(__name__)

MOST_MAKING = 2
"""Children at once in a process. Further requests wait."""
MOST_OPEN = 8
"""Downloads at once in a process, those included that are only being sent."""
PATIENCE_SECONDS = 20.0
LONGEST_SECONDS = 300.0
MOST_BYTES = 2_000_000_000
MOST_ROWS = 1_000_000
LOOK_SECONDS = 0.25
ORDER_IT = "narrow it by bbox or filter, or order it as an extract: send the same request as POST"
PART = 1_000_000
_KEPT = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "PROJ_DATA", "GDAL_DATA")
_COMMAND = (sys.executable, "-m", "geomill.serve.downloads.child")


class CallerGone(Exception):  # noqa: N818  it is not an error
    """The caller has closed the connection."""


class DownloadDesk:
    def __init__(self) -> None:
        self._making = asyncio.Semaphore(MOST_MAKING)
        self._open = 0

    async def answer(self, request: Request, work: FeaturesOrder | PixelsOrder, name: str, media_type: str) -> Response:
        """Make a file and return the answer that sends it."""
        if self._open >= MOST_OPEN:
            raise UnavailableError("too many downloads are under way", remedy="try again in a minute")
        self._open += 1
        try:
            file = await self._made(request, work)
        except BaseException as error:
            self._open -= 1
            if isinstance(error, CallerGone):
                return Response(status_code=499)
            raise
        return _Sending(file, name, media_type, self._sent)

    def _sent(self) -> None:
        self._open -= 1

    async def _made(self, request: Request, work: FeaturesOrder | PixelsOrder) -> BinaryIO:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._making.acquire()
        except TimeoutError:
            raise UnavailableError("other downloads are being made", remedy="try again in a minute") from None
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="geomill-download-"))
        try:
            outcome = await _run(request, DownloadOrder(folder=str(folder), parent=os.getpid(), work=work))
            return (folder / Path(_path(outcome)).name).open("rb")
        finally:
            self._making.release()
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))


def _path(outcome: DownloadOutcome) -> str:
    if outcome.error == "too_many_rows":
        raise _too_large(f"more than {MOST_ROWS:,} features match")
    if outcome.error == "too_large":
        raise _too_large(f"the file would have more than {MOST_BYTES // 1_000_000:,} MB")
    if outcome.path is None:
        reference = new_reference()
        log.error("download failed, reference %s: %s", reference, outcome.message, extra={"action": "download"})
        raise UnavailableError(f"the file could not be made; the log has more under the reference {reference}")
    return outcome.path


def _too_large(reason: str) -> DownloadTooLarge:
    return DownloadTooLarge(f"the download is too large: {reason}", remedy=ORDER_IT)


async def _run(request: Request, order: DownloadOrder) -> DownloadOutcome:
    """Run a child. It is killed if the caller goes away or it takes too long."""
    async with _child() as process:
        assert process.stdin is not None
        talking = asyncio.create_task(process.communicate(order.model_dump_json().encode()))
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                while not (await asyncio.wait({talking}, timeout=LOOK_SECONDS))[0]:
                    if await request.is_disconnected():
                        raise CallerGone
        except TimeoutError:
            raise _too_large(f"it takes more than {LONGEST_SECONDS:.0f} seconds") from None
        finally:
            if not talking.done():
                process.kill()
                with contextlib.suppress(asyncio.CancelledError):
                    await talking
        output, _ = talking.result()
    lines = output.decode(errors="replace").strip().splitlines()
    if process.returncode != 0 or not lines:
        return DownloadOutcome(error="failed", message=f"the child ended with {process.returncode}")
    return DownloadOutcome.model_validate_json(lines[-1])


@asynccontextmanager
async def _child() -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *_COMMAND, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=_environment()
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _environment() -> dict[str, str]:
    """Return what a Python process needs, and no secrets."""
    return {name: os.environ[name] for name in _KEPT if name in os.environ}


class _Sending(Response):
    """Sends a file that has no name any more."""

    def __init__(self, file: BinaryIO, name: str, media_type: str, sent: Callable[[], None]) -> None:
        size = os.fstat(file.fileno()).st_size
        safe = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:100]
        headers = {"Content-Length": str(size), "Content-Disposition": f'attachment; filename="{safe}"'}
        super().__init__(None, headers=headers, media_type=media_type)
        self._file, self._sent = file, sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while scope["method"] != "HEAD" and (part := await asyncio.to_thread(self._file.read, PART)):
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._file.close()
            self._sent()
