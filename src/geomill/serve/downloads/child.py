"""The child process of a download. It reads an order from standard input, and writes its outcome as the last line."""

from __future__ import annotations

import resource
import sys
import warnings
from pathlib import Path

from geomill.domain.access.confidential import without_places
from geomill.downloads.order import DownloadOrder, DownloadOutcome, FeaturesOrder
from geomill.worker.children.limits import die_with, limit_memory

MEMORY_MEGABYTES = 512
"""`limit_memory` lets a process have twice as much and a bit before an allocation fails."""


def main() -> None:
    order = DownloadOrder.model_validate_json(sys.stdin.buffer.read())
    die_with(order.parent)
    limit_memory(MEMORY_MEGABYTES)
    most = order.work.most_bytes
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    warnings.simplefilter("ignore")
    sys.stdout.write(f"{_make(order).model_dump_json()}\n")


def _make(order: DownloadOrder) -> DownloadOutcome:
    from geomill.downloads.features import TooManyRows, write_features
    from geomill.downloads.pixels import write_pixels

    folder = Path(order.folder)
    try:
        if isinstance(order.work, FeaturesOrder):
            path, rows = write_features(order.work, folder)
            return DownloadOutcome(path=str(path), rows=rows)
        return DownloadOutcome(path=str(write_pixels(order.work, folder)))
    except TooManyRows:
        return DownloadOutcome(error="too_many_rows")
    except Exception as error:  # noqa: BLE001  the parent logs it, and the caller gets a problem document
        large = _is_full(error, folder, order.work.most_bytes)
        return DownloadOutcome(error="too_large" if large else "failed", message=without_places(str(error))[:500])


def _is_full(error: Exception, folder: Path, most: int) -> bool:
    """Whether the file has reached its limit. Libraries word that error in their own ways."""
    sizes = [path.stat().st_size for path in folder.iterdir() if path.is_file()]
    return isinstance(error, MemoryError) or max(sizes, default=0) >= most * 0.98


if __name__ == "__main__":
    main()
