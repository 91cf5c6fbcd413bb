"""Drafts in each kind of store: they grow over several writers, and appear under their name when they are whole."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomill.domain.objectname import ObjectName
from geomill.errors import ChecksumMismatch, UploadGone, UploadLocked
from geomill.storage import Storage, SyncStorage
from geomill.storage.drafts import DraftPart, draft_of
from tests.integration.storage.conftest import bronze

MEGABYTE = bytes(range(256)) * 4096


def write(storage: SyncStorage, name: ObjectName, draft_id: str, begin: int, *pieces: bytes) -> list[DraftPart]:
    writer = draft_of(storage, name, draft_id).open(begin, None)
    try:
        for piece in pieces:
            writer.write(piece)
        return writer.sync()
    finally:
        writer.close()


def test_a_draft_of_several_writers(storage: Storage) -> None:
    name, draft_id = bronze(f"{uuid4().hex}/a.tif"), uuid4().hex
    content = MEGABYTE * 9
    parts = write(storage.sync, name, draft_id, 0, content[:5])
    write(storage.sync, name, draft_id, 5, b"lost with its process")
    parts += write(storage.sync, name, draft_id, 5, content[5:7_000_000], content[7_000_000:])
    assert not storage.sync.exists(name)
    digest = hashlib.sha256(content).hexdigest()
    draft = draft_of(storage.sync, name, draft_id)
    assert draft.place(len(content), parts, digest) == digest
    draft.discard()
    assert storage.sync.read(name) == content
    assert [info.name for info in storage.sync.list(name.zone, name.container)] == [name]


@pytest.mark.parametrize("megabytes", [1, 9])
def test_a_wrong_checksum_places_nothing(storage: Storage, megabytes: int) -> None:
    name, draft_id = bronze(f"{uuid4().hex}/a.tif"), uuid4().hex
    parts = write(storage.sync, name, draft_id, 0, *[MEGABYTE] * megabytes)
    draft = draft_of(storage.sync, name, draft_id)
    with pytest.raises(ChecksumMismatch):
        draft.place(len(MEGABYTE) * megabytes, parts, "0" * 64)
    draft.discard()
    assert not storage.sync.exists(name)
    assert list(storage.sync.list(name.zone, name.container)) == []


def test_placing_twice_is_harmless(storage: Storage) -> None:
    name, draft_id = bronze(f"{uuid4().hex}/a.tif"), uuid4().hex
    parts = write(storage.sync, name, draft_id, 0, b"abc")
    draft = draft_of(storage.sync, name, draft_id)
    assert draft.place(3, parts, None) == draft.place(3, parts, None)
    assert storage.sync.read(name) == b"abc"


def test_a_gap_is_noticed(storage: Storage) -> None:
    name, draft_id = bronze(f"{uuid4().hex}/a.tif"), uuid4().hex
    draft = draft_of(storage.sync, name, draft_id)
    with pytest.raises(UploadGone):
        _ = draft.open(5, 10) and draft.place(5, [DraftPart(1, 4, "x")], None)
    assert not storage.sync.exists(name)


def test_only_one_writer_of_a_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    from geomill.storage import StorageRecipe

    storage = SyncStorage(StorageRecipe.in_folder(tmp_path_factory.mktemp("zones")))
    draft = draft_of(storage, bronze("a/b.tif"), "one")
    first = draft.open(0, None)
    with pytest.raises(UploadLocked):
        draft.open(0, None)
    first.close()
    draft.open(0, None).close()


@given(cuts=st.lists(st.integers(0, 5000), max_size=12).map(sorted), data=st.data())
def test_a_folder_draft_is_what_was_noted(
    cuts: list[int], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Writers die after any number of bytes beyond the noted ones; the next begins at the noted ones."""
    from geomill.storage import StorageRecipe

    storage = SyncStorage(StorageRecipe.in_folder(tmp_path_factory.getbasetemp() / "property"))
    name, draft_id, content = bronze(f"{uuid4().hex}/a"), uuid4().hex, (MEGABYTE * 2)[:5000]
    for begin, end in pairwise([0, *cuts, 5000]):
        beyond = data.draw(st.integers(0, 50))
        write(storage, name, draft_id, begin, content[begin:end], b"?" * beyond)
    write(storage, name, draft_id, 5000)
    assert draft_of(storage, name, draft_id).place(5000, [], None) == hashlib.sha256(content).hexdigest()
