"""Sources in a remote store are copied to this machine once, and read from there: a real server of S3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from geomill.datasets.intermediates import folder_of, mount
from geomill.sdk import ObjectName, Storage, Zone
from tests.integration.storage.conftest import s3_recipe
from tests.integration.storage.servers import make_bucket, moto
from tests.integration.vector import sources
from tests.integration.vector.steps import Steps, ok


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Storage]:
    with moto(tmp_path) as endpoint:
        make_bucket(endpoint, "geo-data")
        yield Storage(s3_recipe(endpoint, f"{uuid4().hex[:8]}/"))


def test_it_is_copied_once_and_forgotten(remote: Storage, database: str, tmp_path: Path) -> None:
    data = sources.encoded(tmp_path, sources.table(sources.squares(50)), kind="Polygon")
    source = ObjectName(Zone.BRONZE, sources.CONTAINER, "a.zip")
    remote.sync.put_bytes(source, sources.zipped({"a.gpkg": data}))
    steps = Steps(remote, database)
    plan, chunks = steps.planned("a.zip", chunk_rows=10)
    folder = mount() / folder_of(steps.job_id)
    copied = (folder / "source").stat().st_mtime_ns
    for chunk in chunks:
        ok(steps.load(plan, chunk))
    assert (folder / "source").stat().st_mtime_ns == copied
    later = Steps(remote, database)
    assert later.publish("a.zip")["row_count"] == 50
    assert not (mount() / folder_of(later.job_id)).exists()
