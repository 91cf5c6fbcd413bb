"""Ids and names of assets, requests and their outputs: each made here and nowhere else.

The names are for people, so they follow the partner's identifiers, and lose what a table, a path or a STAC id cannot
hold: case, punctuation, length. Two assets may so want one name. `candidates` therefore gives several, the plain one
first, and the table takes the first that nobody else has: a unique index on each name decides.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from geomill.domain.assets.platform import Platform, Ref

LONGEST_TABLE = 48
"""Of the 63 bytes that PostgreSQL has for a name: the rest is for the revision and what is made on the way."""
LONGEST_PATH = 300
LONGEST_ITEM = 180


@dataclass(frozen=True, slots=True)
class Names:
    """What the outputs of an asset are called, before the revision is added."""

    table_stem: str
    blob_stem: str
    stac_item_id: str


def asset_id(platform_id: str, refs: Mapping[str, Ref]) -> str:
    """The same identifiers of the same platform are the same asset, whatever the order in which they come."""
    canonical = json.dumps(dict(refs), sort_keys=True, separators=(",", ":"))
    return _digest(f"{platform_id}|{canonical}")


def request_id(asset: str, unique: str) -> str:
    return _digest(f"{asset}|{unique}")


def candidates(platform: Platform, refs: Mapping[str, Ref], identity: str) -> Iterator[Names]:
    """The plain names, then with a short hash, then with the whole identity, which nobody else can have: plain names
    that could be taken for such ones are not used."""
    parts = [str(value) for value in platform.in_order(refs)]
    plain = _names(parts, "")
    if "__" not in plain.table_stem and "--" not in plain.blob_stem + plain.stac_item_id:
        yield plain
    for suffix in (identity[:8], identity):
        yield _names(parts, suffix)


def collection_candidates(platform: Platform, refs: Mapping[str, Ref]) -> Iterator[str]:
    """Assets of one group (of a DDH dataset) share a collection; other groups never do."""
    group = str(platform.group_of(refs))
    slug = re.sub(r"[^a-z0-9_-]", "", group.lower().replace(" ", "-"))[:LONGEST_ITEM]
    digest = _digest(f"{platform.platform_id}|{group}")
    if slug and "--" not in slug:
        yield slug
    yield f"{slug or platform.platform_id}--{digest[:8]}"
    yield f"{slug or platform.platform_id}--{digest}"


def table_name(stem: str, revision: int) -> str:
    return f"{stem}_r{revision}"


def blob_prefix(stem: str, revision: int) -> str:
    """Where the files of one revision live. No part of a stem has an underscore, so that an asset's folder is never
    inside another one's revision."""
    return f"{stem}/_r{revision}"


def _names(parts: Sequence[str], suffix: str) -> Names:
    table = re.sub(r"[^a-z0-9_]", "", "_".join(parts).lower().replace(" ", "_"))
    path = "/".join(re.sub(r"[^a-z0-9-]", "", part.lower().replace(" ", "-")) or "x" for part in parts)
    item = re.sub(r"[^a-z0-9-]", "", "-".join(parts).lower().replace("_", "-").replace(" ", "-"))
    return Names(
        _ended(table or "asset", "__", suffix, LONGEST_TABLE),
        _ended(path[:LONGEST_PATH].rstrip("/"), "--", suffix, LONGEST_PATH + 40),
        _ended(item or "asset", "--", suffix, LONGEST_ITEM),
    )


def _ended(stem: str, separator: str, suffix: str, longest: int) -> str:
    """The stem, cut so that the suffix has room."""
    end = separator + suffix if suffix else ""
    return stem[: longest - len(end)] + end


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
