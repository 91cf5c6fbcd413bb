"""Detects a source that was replaced while a job works on it. Its parts would not fit together."""

from __future__ import annotations

from geomill.datasets.refusals import refused
from geomill.datasets.source import Source
from geomill.sdk import Storage


def check_unchanged(storage: Storage, source: Source) -> None:
    if source.etag is not None and storage.sync.stat(source.name).etag != source.etag:
        raise refused("source_changed", f"'{source.name}' was replaced after its validation: submit it again")
