"""Run as a program: what it takes, in megabytes, to look at a file and to read all of it."""

from __future__ import annotations

import sys
from pathlib import Path

from geomill.handlers.vector.validate import validate
from geomill.sdk.testing import folder_storage, run_handler
from geomill.vector.facts import Chunk, Format
from geomill.vector.parquet_layer import ParquetLayer
from tests.integration.vector import sources
from tests.integration.vector.steps import copies


def peak() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


def main(folder: Path, file_name: str, job_id: str) -> None:
    params = {"container_name": sources.CONTAINER, "file_name": file_name}
    run = run_handler(validate, params, storage=folder_storage(folder), job_id=job_id)
    assert run.success, run.error
    (copy,) = copies(job_id)
    layer = ParquetLayer.copied(copy, Format.GEOJSON)
    start, stop = layer.bounds_of_ids()
    read = sum(len(batch.ids) for batch in layer.batches(Chunk(number=0, start=start, stop=stop), 20_000))
    assert read == run.output["facts"]["rows"]
    sys.stdout.write(f"{peak()} {read} {stop - start}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
