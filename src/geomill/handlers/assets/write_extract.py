"""Writes an extract: features or pixels of an asset as a file, for the caller who ordered it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from geomill.datasets.intermediates import DRAFT_PREFIX
from geomill.datasets.refusals import DataRefused, refused
from geomill.domain.assets.extract import file_of
from geomill.sdk import HandlerContext, HandlerError, register_handler

if TYPE_CHECKING:
    from geomill.downloads.order import FeaturesOrder
    from geomill.downloads.work import ExtractWork

SECONDS = 14_400


class WriteExtractParams(BaseModel):
    extract_id: str


class WriteExtractOutput(BaseModel):
    path: str
    """The path in the container of extracts."""
    size: int
    sha256: str
    rows: int | None = None


@register_handler(
    "assets.write_extract",
    queue="container-tasks",
    timeout_seconds=SECONDS,
    params=WriteExtractParams,
    output=WriteExtractOutput,
)
def write_extract(ctx: HandlerContext[WriteExtractParams]) -> WriteExtractOutput:
    """Writes the file that a caller ordered. The order in the database says what it reads, never the inputs."""
    from geomill.downloads.work import read_work

    def current() -> ExtractWork:
        extract = read_work(ctx.database, ctx.storage, ctx.params.extract_id, ctx.job_id)
        if extract is None:
            raise refused("extract_gone", "the extract is no longer available: order it again")
        return extract

    extract = current()
    with tempfile.TemporaryDirectory(prefix=DRAFT_PREFIX) as folder:
        path, rows = _written(ctx, extract, Path(folder))
        name = file_of(f"{extract.extract_id}/{ctx.attempt}/{extract.file_name}")
        stored = ctx.storage.sync.put_file(name, path, media_type=extract.media_type)
    try:
        current()
    except HandlerError:  # it was withdrawn meanwhile, and who deletes its files may have been here before
        ctx.storage.sync.delete(name)
        raise
    return WriteExtractOutput(path=name.path, size=stored.size, sha256=stored.sha256, rows=rows)


def _written(ctx: HandlerContext[WriteExtractParams], extract: ExtractWork, folder: Path) -> tuple[Path, int | None]:
    """Write the file. A file beyond its limit ends the work, at the latest when it is whole."""
    from geomill.downloads.order import FeaturesOrder
    from geomill.downloads.pixels import write_pixels

    check = _limit(folder, extract.most_bytes)

    def tell(rows: int) -> None:
        ctx.raise_if_cancelled()
        check()
        ctx.progress(0.5, message=f"{rows:,} rows")

    try:
        rows: int | None = None
        if isinstance(extract.work, FeaturesOrder):
            path, rows = _features(extract.work, folder, tell)
        else:
            path = write_pixels(extract.work, folder, tell)
    except DataRefused:
        raise
    except Exception:
        check()  # GDAL and Arrow wrap the error of a callback
        ctx.raise_if_cancelled()
        raise
    check()
    return path, rows


def _features(work: FeaturesOrder, folder: Path, tell: Callable[[int], None]) -> tuple[Path, int]:
    from geomill.downloads.features import TooManyRows, write_features

    try:
        return write_features(work, folder, tell, SECONDS)
    except TooManyRows:
        raise refused(
            "extract_too_large",
            f"more than {work.most_rows:,} features match: narrow them by bbox or filter, or choose another format",
        ) from None


def _limit(folder: Path, most: int) -> Callable[[], None]:
    def check() -> None:
        size = max((path.stat().st_size for path in folder.iterdir() if path.is_file()), default=0)
        if size > most:
            raise refused(
                "extract_too_large",
                f"the file has more than {most / 1e9:,.3g} GB: narrow it by bbox or filter, or take the asset's files",
            )

    return check
