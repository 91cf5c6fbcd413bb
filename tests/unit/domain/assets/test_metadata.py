"""The description of data by its submitter: plain text, known licences, ordered times, links to the web only."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from geomill.domain.assets.metadata import DatasetMetadata

WHOLE: dict[str, Any] = {
    "title": "Land cover of Jakarta",
    "description": "Classes < 5 are urban.\n\nSee the report.",
    "license": "CC-BY-4.0",
    "keywords": ["land cover", "Jakarta"],
    "providers": [{"name": "Acme & Sons", "roles": ["producer", "host"], "url": "https://example.com/a?b=1"}],
    "temporal_extent": {"start": "2020-01-01T00:00:00Z", "end": "2020-12-31T23:59:59Z"},
    "attribution": "© Acme & Sons",
}


def test_it_is_kept_as_it_is() -> None:
    metadata = DatasetMetadata.model_validate(WHOLE)
    assert metadata.to_json() == WHOLE
    assert DatasetMetadata.stored(metadata.to_json()) == metadata
    assert metadata.times == {"start_datetime": "2020-01-01T00:00:00Z", "end_datetime": "2020-12-31T23:59:59Z"}


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        ("cc-by-4.0", "CC-BY-4.0"),
        ("odbl-1.0", "ODbL-1.0"),
        ("MIT or apache-2.0", "MIT OR Apache-2.0"),
        ("Proprietary", "proprietary"),
        ("other", "other"),
    ],
)
def test_licences(text: str, licence: str) -> None:
    assert DatasetMetadata(license=text).license == licence


@pytest.mark.parametrize(
    "fields",
    [
        {"license": "free as in beer"},
        {"license": "CC-BY-99"},
        {"title": ""},
        {"title": "x" * 201},
        {"title": "two\nlines"},
        {"title": "right\u202eto left"},
        {"title": "<script>alert(1)</script>"},
        {"title": "< img src=x onerror=alert(1)>"},
        {"description": "</textarea><svg onload=alert(1)>"},
        {"description": "zero\0byte"},
        {"attribution": "<a href='javascript:alert(1)'>us</a>"},
        {"keywords": ["x"] * 51},
        {"keywords": [""]},
        {"providers": [{"name": "A", "url": "javascript:alert(1)"}]},
        {"providers": [{"name": "A", "url": "data:text/html,x"}]},
        {"providers": [{"name": "A", "url": "https://user:password@example.com"}]},
        {"providers": [{"name": "A", "url": 'https://example.com/"onclick="x'}]},
        {"providers": [{"name": "A", "roles": ["owner"]}]},
        {"providers": [{"roles": ["host"]}]},
        {"temporal_extent": {"start": "2020-01-02T00:00:00Z", "end": "2020-01-01T00:00:00Z"}},
        {"temporal_extent": {"start": "2020-01-02T00:00:00"}},
        {"temporal_extent": {"start": "2020-01-01T00:00:00", "end": "2020-01-02T00:00:00"}},
        {"licence": "MIT"},
    ],
)
def test_what_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DatasetMetadata.model_validate(fields)


@given(st.text(max_size=60), st.sampled_from(["title", "description", "attribution"]))
def test_no_text_begins_a_tag(text: str, field: str) -> None:
    try:
        kept = getattr(DatasetMetadata.model_validate({field: text}), field)
    except ValidationError:
        return
    assert not re.search(r"<\s*[A-Za-z/!?]", kept)


def test_stored_metadata_that_no_longer_fits_is_left_out() -> None:
    assert DatasetMetadata.stored({"license": "gone"}) == DatasetMetadata()
    assert DatasetMetadata.stored(None) == DatasetMetadata()
