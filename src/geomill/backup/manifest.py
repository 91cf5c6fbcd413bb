"""The manifest of a backup. It may come from anybody, so nothing in it is trusted before it is checked."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from geomill.domain.objectname import ObjectName, Zone, check_path
from geomill.errors import BackupInvalid, InvalidName

PATH = "manifest.json"
LARGEST = 256 * 1024 * 1024
"""Bytes of a manifest: a few hundred thousand tables."""


def _checked_path(value: str) -> str:
    try:
        return check_path(value)
    except InvalidName as error:
        raise ValueError(str(error)) from None


RelativePath = Annotated[str, AfterValidator(_checked_path)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=2**62)]
SqlName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[^\x00]+$")]
Comment = Annotated[str, Field(max_length=100_000, pattern=r"^[^\x00]*$")]
_TIME = r"time(?:stamp)?(?:\([0-6]\))? with(?:out)? time zone"
_PLACE = r"(?:geometry|geography)(?:\([A-Za-z]{1,20}(?:,\d{1,6})?\))?"
_NUMBER = r"smallint|integer|bigint|real|double precision|numeric(?:\(\d{1,4}(?:,-?\d{1,4})?\))?"
_TEXT = r"text|character varying(?:\(\d{1,8}\))?|character\(\d{1,8}\)|uuid|jsonb?|bytea|boolean|date|interval"
COLUMN_TYPE = rf"^(?:{_NUMBER}|{_TEXT}|{_TIME}|{_PLACE})(?:\[\])?$"
"""Types of columns that can be restored. They become SQL, so nothing else may pass."""
ColumnType = Annotated[str, Field(pattern=COLUMN_TYPE)]


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BackupPart(Model):
    """A file of the backup. `size` is its bytes before compression, `packed` those after it."""

    path: RelativePath
    size: Count
    packed: Count
    sha256: Digest
    """The hash of the packed bytes."""


class RowsPart(BackupPart):
    """Rows in the text format of COPY."""

    rows: Count


class TableRows(RowsPart):
    """The rows of one of our tables, whose shape the models have."""

    table: Annotated[str, Field(max_length=130)]
    columns: Annotated[list[SqlName], Field(min_length=1, max_length=1600)]


class FeatureColumn(Model):
    name: SqlName
    type: ColumnType
    required: bool = False
    comment: Comment | None = None


class FeatureIndex(Model):
    name: SqlName
    method: Literal["btree", "gist", "brin", "hash", "spgist", "gin"]
    columns: Annotated[list[SqlName], Field(min_length=1, max_length=32)]
    unique: bool = False
    primary: bool = False


class FeaturePart(RowsPart):
    """A table of features with its shape, which no model has."""

    home: Literal["geo", "geo_staging"]
    name: SqlName
    comment: Comment | None = None
    columns: Annotated[list[FeatureColumn], Field(min_length=1, max_length=1600)]
    indexes: list[FeatureIndex] = Field(default_factory=list)

    @model_validator(mode="after")
    def _known_columns(self) -> Self:
        names = {column.name for column in self.columns}
        if any(not names.issuperset(index.columns) for index in self.indexes):
            raise ValueError("an index has a column that the table does not have")
        return self


class SequenceValue(Model):
    table: Annotated[str, Field(max_length=130)]
    column: SqlName
    value: Annotated[int, Field(ge=1, le=2**63 - 1)]


class DatabasePart(Model):
    server_version: Annotated[str, Field(max_length=64)]
    pgstac_version: Annotated[str, Field(max_length=64)] | None
    taken_at: AwareDatetime
    """When its snapshot was taken, by the server's clock."""
    tables: list[TableRows]
    features: list[FeaturePart]
    left_out: list[Annotated[str, Field(max_length=500)]] = Field(default_factory=list)
    """Tables of features that are not in the backup, with the reason."""
    sequences: list[SequenceValue]
    collections: RowsPart
    items: RowsPart

    @property
    def parts(self) -> list[RowsPart]:
        return [*self.tables, *self.features, self.collections, self.items]


class ObjectsPart(BackupPart):
    """The index of all objects, one line for each."""

    objects: Count
    object_bytes: Count
    copied: Count
    missing: Count
    """Objects that the database refers to, and that were not in their zone."""
    zones: dict[Zone, Annotated[str, Field(max_length=1000)]]
    """The location of each zone."""


class ObjectLine(Model):
    """A line of the index of objects."""

    zone: Zone
    container: Annotated[str, Field(max_length=63)]
    path: RelativePath
    size: Count
    sha256: Digest | None = None
    """None if the object was not read."""
    etag: Annotated[str, Field(max_length=1000)] | None = None
    """The store's name for this version. Another store names the same bytes differently."""
    copied: bool = False
    missing: bool = False

    @model_validator(mode="after")
    def _sound(self) -> Self:
        try:
            ObjectName(self.zone, self.container, self.path)
        except InvalidName as error:
            raise ValueError(str(error)) from None
        if self.copied and (self.sha256 is None or self.missing):
            raise ValueError("an object that was copied has a hash, and is not missing")
        return self

    @property
    def name(self) -> ObjectName:
        return ObjectName(self.zone, self.container, self.path)

    @property
    def place(self) -> str:
        """The path of its bytes in the backup."""
        return f"objects/{self.zone}/{self.container}/{self.path}"


class KeyFile(BackupPart):
    """A key file of the data folder."""

    name: Literal["link.key", "admin.key"]


class Manifest(Model):
    format: Literal[1] = 1
    geomill_version: Annotated[str, Field(max_length=64)]
    schema_fingerprint: Annotated[str, Field(max_length=200)]
    started_at: AwareDatetime
    finished_at: AwareDatetime
    inside: DatabasePart
    outside: DatabasePart | None
    objects: ObjectsPart
    keys: list[KeyFile]

    @property
    def parts(self) -> list[BackupPart]:
        """Every file but the manifest and the copies of objects."""
        outside = self.outside.parts if self.outside else []
        return [*self.inside.parts, *outside, self.objects, *self.keys]

    @property
    def digest(self) -> str:
        return sha256(_canonical(self)).hexdigest()

    def to_bytes(self) -> bytes:
        """Return the manifest as JSON with its own hash, so that a flipped bit is noticed."""
        document = {"manifest_sha256": self.digest, "manifest": self.model_dump(mode="json")}
        return json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Parse a manifest. Raises `BackupInvalid` with the reason if it is not valid."""
        try:
            document = json.loads(data)
            manifest, digest = cls.model_validate(document["manifest"]), document["manifest_sha256"]
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"])) or "the manifest"
            raise BackupInvalid(f"the manifest cannot be used: {place}: {first['msg']}") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise BackupInvalid("the manifest cannot be read: it is not the JSON of a backup's manifest") from None
        if digest != manifest.digest:
            raise BackupInvalid("the manifest was changed: it does not have the hash that it names")
        return manifest


def _canonical(manifest: Manifest) -> bytes:
    return json.dumps(manifest.model_dump(mode="json"), sort_keys=True, separators=(",", ":")).encode()
