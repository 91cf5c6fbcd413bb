"""Ids and names of assets."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from geomill.domain.assets import naming
from geomill.domain.assets.platform import DDH_REFS, Platform

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DDH = Platform(
    platform_id="ddh",
    display_name="D",
    required_refs=list(DDH_REFS),
    optional_refs=["part"],
    created_at=NOW,
    updated_at=NOW,
)
texts = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=60)
refs = st.fixed_dictionaries({name: texts | st.integers(-9, 9) for name in DDH_REFS}, optional={"part": texts})


def test_the_id_is_what_a_partner_computes():
    asset_refs = {"version_id": "v1.0", "dataset_id": "IDN_lulc", "resource_id": "jakarta_2024"}
    text = 'ddh|{"dataset_id":"IDN_lulc","resource_id":"jakarta_2024","version_id":"v1.0"}'
    assert naming.asset_id("ddh", asset_refs) == hashlib.sha256(text.encode()).hexdigest()[:32]


def test_plain_names_are_readable():
    names = next(
        naming.candidates(DDH, {"dataset_id": "Floods 2024", "resource_id": "depth", "version_id": "v1"}, "0" * 32)
    )
    assert names == naming.Names("floods_2024_depth_v1", "floods-2024/depth/v1", "floods-2024-depth-v1")


@given(refs, refs)
def test_other_references_are_another_asset(first, second):
    assert (naming.asset_id("ddh", first) == naming.asset_id("ddh", second)) is (
        repr(sorted(first.items())) == repr(sorted(second.items()))
    )
    assert naming.asset_id("ddh", first) != naming.asset_id("arcgis", first)


@given(refs)
def test_every_candidate_is_a_fit_name(asset_refs):
    identity = naming.asset_id("ddh", asset_refs)
    for names in naming.candidates(DDH, asset_refs, identity):
        assert re.fullmatch(r"[a-z0-9_]{1,48}", names.table_stem)
        assert len(naming.table_name(names.table_stem, 2**31)) <= 63
        assert re.fullmatch(r"[a-z0-9-]+(/[a-z0-9-]+)*", names.blob_stem)
        assert re.fullmatch(r"[a-z0-9-]{1,180}", names.stac_item_id)
    for collection in naming.collection_candidates(DDH, asset_refs):
        assert re.fullmatch(r"[a-z0-9_-]{1,200}", collection)


@given(refs, refs)
def test_the_last_candidate_is_nobody_else_s(first, second):
    ids = naming.asset_id("ddh", first), naming.asset_id("ddh", second)
    last = [
        list(naming.candidates(DDH, asset_refs, identity))[-1]
        for asset_refs, identity in zip((first, second), ids, strict=True)
    ]
    if ids[0] != ids[1]:
        assert last[0].table_stem != last[1].table_stem
        assert last[0].blob_stem != last[1].blob_stem
        assert last[0].stac_item_id != last[1].stac_item_id
