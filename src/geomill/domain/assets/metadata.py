"""The description of a dataset by its submitter: title, licence, providers and the like.

It is shown in the catalogue, in maps and on pages, so every text is plain: no HTML, no control characters, and links
lead to http and https only.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Self

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

METADATA_OUTPUT = "dataset_metadata"
"""The name under which the metadata of a revision lies among its outputs. `follow_job.sql` writes it."""
OTHER_LICENCES = ("proprietary", "other")
_TAG = re.compile(r"<\s*[A-Za-z/!?]")
_URL = re.compile(r"https?://[^\s/?#@<>\"'\\]+([/?#][^\s<>\"'\\]*)?", re.IGNORECASE)


def _plain(text: str) -> str:
    if _TAG.search(text):
        raise ValueError("the text has HTML in it: write it as plain text")
    return text


def _line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("the text has a control character or a line break")
    return _plain(text)


def _paragraphs(text: str) -> str:
    if not all(character.isprintable() or character in "\n\t" for character in text.replace("\r\n", "\n")):
        raise ValueError("the text has a control character")
    return _plain(text.replace("\r\n", "\n"))


def _licence(text: str) -> str:
    if text.lower() in OTHER_LICENCES:
        return text.lower()
    try:
        return str(canonicalize_license_expression(text))
    except InvalidLicenseExpression:
        raise ValueError(
            f"'{text[:80]}' is not an SPDX licence such as CC-BY-4.0 or ODbL-1.0: see https://spdx.org/licenses, "
            f"or write {' or '.join(OTHER_LICENCES)}"
        ) from None


def _link(text: str) -> str:
    if not _URL.fullmatch(text) or not text.isprintable():
        raise ValueError("must be an http:// or https:// URL without a password, spaces, quotes and angle brackets")
    return text


def _short(longest: int) -> StringConstraints:
    return StringConstraints(min_length=1, max_length=longest, strip_whitespace=True)


Line = Annotated[str, _short(200), AfterValidator(_line)]
Keyword = Annotated[str, _short(80), AfterValidator(_line)]
Attribution = Annotated[str, _short(500), AfterValidator(_line)]
Paragraphs = Annotated[str, _short(5000), AfterValidator(_paragraphs)]
Licence = Annotated[str, _short(100), AfterValidator(_licence)]
Link = Annotated[str, StringConstraints(max_length=500), AfterValidator(_link)]


class ProviderRole(StrEnum):
    LICENSOR = "licensor"
    PRODUCER = "producer"
    PROCESSOR = "processor"
    HOST = "host"


class _Described(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataProvider(_Described):
    """An organisation that captured, processes or holds the data."""

    name: Line
    description: Paragraphs | None = None
    roles: Annotated[list[ProviderRole], Field(max_length=4)] = []
    url: Link | None = None


class TemporalExtent(_Described):
    start: AwareDatetime
    end: AwareDatetime

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end < self.start:
            raise ValueError("end is before start")
        return self


class DatasetMetadata(_Described):
    title: Line | None = None
    description: Paragraphs | None = None
    license: Licence | None = Field(default=None, description="SPDX identifier or expression, `proprietary` or `other`")
    keywords: Annotated[list[Keyword], Field(max_length=50)] = []
    providers: Annotated[list[DataProvider], Field(max_length=20)] = []
    temporal_extent: TemporalExtent | None = Field(default=None, description="The time that the data describes")
    attribution: Attribution | None = Field(default=None, description="The line that maps show beside the data")

    @classmethod
    def stored(cls, value: Any) -> Self:
        """Read stored metadata. What does not fit today's rules is left out, so that the data stays served."""
        try:
            return cls.model_validate(value or {})
        except ValidationError:
            return cls()

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True)

    @property
    def times(self) -> dict[str, str]:
        """The temporal extent under the names of STAC. Empty if there is none."""
        if self.temporal_extent is None:
            return {}
        start, end = self.temporal_extent.start.isoformat(), self.temporal_extent.end.isoformat()
        return {"start_datetime": start.replace("+00:00", "Z"), "end_datetime": end.replace("+00:00", "Z")}
