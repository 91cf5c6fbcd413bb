"""The only place that makes the ids and names of assets, requests and their outputs.

The names are for people, so they follow the partner's identifiers, without the case, punctuation and length that a
table, a path or a STAC id does not allow. Two assets may then have the same name. So `candidates` returns several, the
plain one first, and the first that is free is used. A unique index on each name decides.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from geomill.domain.assets.platform import Platform, Ref
from geomill.domain.folding import folded

LONGEST_TABLE = 48
"""PostgreSQL allows 63 bytes. The rest is for the revision and for temporary tables."""
LONGEST_PATH = 300
LONGEST_ITEM = 180


@dataclass(frozen=True, slots=True)
class Names:
    """The names of an asset's outputs, before the revision is added."""

    table_stem: str
    blob_stem: str
    stac_item_id: str


def asset_id(platform_id: str, refs: Mapping[str, Ref]) -> str:
    """Return the id of an asset. It depends on the platform and the identifiers, but not on their order."""
    canonical = json.dumps(dict(refs), sort_keys=True, separators=(",", ":"))
    return _digest(f"{platform_id}|{canonical}")


def request_id(asset: str, unique: str) -> str:
    return _digest(f"{asset}|{unique}")


def candidates(platform: Platform, refs: Mapping[str, Ref], identity: str) -> Iterator[Names]:
    """Yield the plain names, then those with a short hash, then those with the whole asset id. The last are always
    free, because plain names that look like them are not used."""
    parts = [folded(str(value)) for value in platform.in_order(refs)]
    plain = _names(parts, "")
    if "__" not in plain.table_stem and "--" not in plain.blob_stem + plain.stac_item_id:
        yield plain
    for suffix in (identity[:8], identity):
        yield _names(parts, suffix)


def collection_candidates(platform: Platform, refs: Mapping[str, Ref]) -> Iterator[str]:
    """Yield names for the collection of a group of assets, such as a DDH dataset. Groups never share a collection."""
    group = str(platform.group_of(refs))
    slug = re.sub(r"[^a-z0-9_-]", "", folded(group).lower().replace(" ", "-"))[:LONGEST_ITEM]
    digest = _digest(f"{platform.platform_id}|{group}")
    if slug and "--" not in slug:
        yield slug
    yield f"{slug or platform.platform_id}--{digest[:8]}"
    yield f"{slug or platform.platform_id}--{digest}"


def table_name(stem: str, revision: int) -> str:
    return f"{stem}_r{revision}"


def blob_prefix(stem: str, revision: int) -> str:
    """Return the folder of a revision's files. No part of a stem has an underscore, so an asset's folder is never
    inside a revision of another asset."""
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
    """Return the stem with the suffix, cut to the maximum length."""
    end = separator + suffix if suffix else ""
    return stem[: longest - len(end)] + end


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
