"""Writes objects to a store. An object becomes visible only when it is complete.

Azure and S3 commit an upload at its end; a failed upload is aborted. In a folder an object is written to a staging
folder and then moved.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import obstore

from geomill.domain.location import AzureAccount
from geomill.storage.stores import ResolvedContainer
from geomill.storage.transfer import PARTS_AT_ONCE, part_size

if TYPE_CHECKING:
    from obstore import Attributes


@dataclass(frozen=True, slots=True)
class Label:
    """The attributes of an object. A `cool` object is cheap to store and expensive to read."""

    media_type: str | None = None
    cool: bool = False


def put_whole(shelf: ResolvedContainer, key: str, data: bytes, *, if_absent: bool, label: Label) -> None:
    with _placed(shelf, key, overwrite=not if_absent) as place:
        obstore.put(
            shelf.store,
            place,
            data,
            mode="create" if if_absent and not shelf.local else "overwrite",
            attributes=_attributes(shelf, label),
            use_multipart=False,
        )


def put_parts(shelf: ResolvedContainer, key: str, parts: Iterator[bytes], size: int, *, label: Label) -> None:
    """Upload an object in parts. If `parts` raises, the upload is aborted."""
    with _placed(shelf, key) as place:
        obstore.put(
            shelf.store,
            place,
            parts,
            attributes=_attributes(shelf, label),
            chunk_size=part_size(size),
            max_concurrency=PARTS_AT_ONCE,
        )


def copy_inside(shelf: ResolvedContainer, key: str, new_key: str) -> None:
    with _placed(shelf, new_key) as place:
        obstore.copy(shelf.store, key, place)


@contextlib.contextmanager
def _placed(shelf: ResolvedContainer, key: str, *, overwrite: bool = True) -> Iterator[str]:
    """Yield the key to write to. In a folder this is a staging key, from which the object is then moved atomically."""
    if not shelf.local:
        yield key
        return
    staged = shelf.staging_key()
    try:
        yield staged
        obstore.rename(shelf.store, staged, key, overwrite=overwrite)
    except BaseException:  # nothing must stay behind
        with contextlib.suppress(FileNotFoundError):
            obstore.delete(shelf.store, staged)
        raise


def _attributes(shelf: ResolvedContainer, label: Label) -> Attributes | None:
    """Return the attributes of an object. A folder has none."""
    attributes: Attributes = {}
    if label.media_type:
        attributes["Content-Type"] = label.media_type
    if label.cool:
        attributes["Storage-Class"] = "Cool" if isinstance(shelf.location, AzureAccount) else "STANDARD_IA"
    return attributes if attributes and not shelf.local else None
