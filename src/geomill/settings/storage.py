"""Files: the zones, uploads, extracts, and how long old data is kept."""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasChoices, Field, SecretStr, field_validator
from pydantic_settings import NoDecode

from geomill.domain.assets.source_url import check_prefix
from geomill.domain.engine.callback import Allowance
from geomill.domain.location import parse_location
from geomill.errors import InputError
from geomill.settings.concern import Concern, split_commas


class StorageSettings(Concern):
    """The locations of the zones and the access to their stores. Credentials have the names that other tools use."""

    bronze: Annotated[str | None, Field(description="Location of the sources: a folder, az://… or s3://…")] = None
    silver: Annotated[str | None, Field(description="Location of the results")] = None
    external: Annotated[str | None, Field(description="Location of the public copies")] = None
    azure_connection_strings: Annotated[
        SecretStr | None, Field(description="Connection strings of Azure storage accounts, separated by spaces")
    ] = Field(default=None, validation_alias=AliasChoices("AZURE_STORAGE_CONNECTION_STRING"))
    azure_key: Annotated[SecretStr | None, Field(description="Key of the Azure storage account")] = Field(
        default=None, validation_alias=AliasChoices("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCESS_KEY")
    )
    azure_sas_token: Annotated[SecretStr | None, Field(description="Shared access signature of the account")] = Field(
        default=None, validation_alias=AliasChoices("AZURE_STORAGE_SAS_TOKEN")
    )
    azure_client_id: Annotated[str | None, Field(description="Client id of the managed identity of Azure to use")] = (
        Field(default=None, validation_alias=AliasChoices("AZURE_CLIENT_ID", "MANAGED_IDENTITY_CLIENT_ID"))
    )
    aws_access_key_id: Annotated[str | None, Field(description="Key id for S3")] = Field(
        default=None, validation_alias=AliasChoices("AWS_ACCESS_KEY_ID")
    )
    aws_secret_access_key: Annotated[SecretStr | None, Field(description="Key for S3")] = Field(
        default=None, validation_alias=AliasChoices("AWS_SECRET_ACCESS_KEY")
    )
    aws_session_token: Annotated[SecretStr | None, Field(description="Token of temporary keys for S3")] = Field(
        default=None, validation_alias=AliasChoices("AWS_SESSION_TOKEN")
    )
    aws_region: Annotated[str | None, Field(description="Region of the buckets")] = Field(
        default=None, validation_alias=AliasChoices("AWS_REGION", "AWS_DEFAULT_REGION")
    )
    aws_endpoint_url: Annotated[str | None, Field(description="URL of an S3 server other than Amazon's")] = Field(
        default=None, validation_alias=AliasChoices("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    )
    space_warning_mb: Annotated[
        int, Field(ge=0, description="Free megabytes below which a disk counts as nearly full")
    ] = 5_000
    storage_timeout_sec: Annotated[
        float, Field(gt=0, le=600, description="Maximum seconds of one request to a store")
    ] = 30.0
    storage_retry_sec: Annotated[
        float, Field(ge=0, le=280, description="Seconds during which an unanswered request to a store is tried again")
    ] = 60.0

    @field_validator("bronze", "silver", "external")
    @classmethod
    def _location(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                parse_location(value)
            except InputError as error:
                raise ValueError(str(error)) from None
        return value

    @field_validator("aws_endpoint_url")
    @classmethod
    def _url(cls, value: str | None) -> str | None:
        if value is not None and (not value.startswith(("http://", "https://")) or "@" in value):
            raise ValueError("must be an http:// or https:// URL with a host and without a password")
        return value


class UploadSettings(Concern):
    """Uploads over HTTP. Limits on numbers hold for each platform."""

    upload_max_bytes: Annotated[int, Field(ge=1, description="Maximum bytes of one uploaded file")] = 100_000_000_000
    upload_open_most: Annotated[int, Field(ge=1, description="Maximum unfinished uploads of one platform")] = 100
    upload_open_bytes: Annotated[
        int, Field(ge=1, description="Maximum bytes that the unfinished uploads of one platform may have together")
    ] = 500_000_000_000
    upload_expire_hours: Annotated[
        float,
        Field(gt=0, le=8760, description="Hours without a new byte after which an unfinished upload is removed"),
    ] = 24.0
    upload_from: Annotated[
        list[str],
        NoDecode,
        Field(description="URLs, or beginnings of URLs, that files may be fetched from; default: none"),
    ] = Field(default_factory=list)
    upload_from_allow: Annotated[
        list[str],
        NoDecode,
        Field(description="Hosts and networks outside the public internet that files may be fetched from"),
    ] = Field(default_factory=list)

    _lists = field_validator("upload_from", "upload_from_allow", mode="before")(split_commas)

    @field_validator("upload_from")
    @classmethod
    def _prefixes(cls, value: list[str]) -> list[str]:
        for prefix in value:
            check_prefix(prefix)
        return value

    @field_validator("upload_from_allow")
    @classmethod
    def _readable(cls, value: list[str]) -> list[str]:
        Allowance.of(value)
        return value


class ExtractSettings(Concern):
    """Files that callers order because they are too large for an answer."""

    extract_max_bytes: Annotated[int, Field(ge=1, description="Maximum bytes of one extract")] = 20_000_000_000
    extract_most: Annotated[
        int,
        Field(ge=0, description="Maximum extracts of one platform, or of one caller without a platform; 0: none"),
    ] = 5
    extract_anonymous_most: Annotated[
        int, Field(ge=0, description="Maximum extracts of all callers without a credential together; 0: none")
    ] = 5
    extract_total_bytes: Annotated[
        int, Field(ge=1, description="Maximum bytes of all extracts; an unfinished one counts with its maximum")
    ] = 200_000_000_000
    keep_extracts_hours: Annotated[
        float, Field(gt=0, le=8760, description="Hours after its order at which an extract is deleted")
    ] = 48.0


class RetentionSettings(Concern):
    """How long old data is kept."""

    keep_details_days: Annotated[
        float,
        Field(
            ge=0,
            le=36_500,
            description="Days that the details and large outputs of a job are kept after its end; 0: forever",
        ),
    ] = 90.0
    keep_failed_days: Annotated[
        float,
        Field(
            ge=0,
            le=36_500,
            description="Days that the data of a failed, cancelled or early superseded revision is kept; 0: forever",
        ),
    ] = 30.0
    keep_superseded_days: Annotated[
        float,
        Field(
            ge=0,
            le=36_500,
            description="Days that the data of a completed revision is kept after a newer one replaced it; 0: forever",
        ),
    ] = 0.0
    keep_unused_uploads_days: Annotated[
        float,
        Field(ge=0, le=36_500, description="Days that an uploaded file is kept which no request names; 0: forever"),
    ] = 7.0
    keep_sources_days: Annotated[
        float,
        Field(
            ge=0,
            le=36_500,
            description="Days that an uploaded file is kept after the last request that names it; 0: forever",
        ),
    ] = 0.0
    keep_jobs_days: Annotated[
        float,
        Field(ge=0, le=36_500, description="Days that a job is kept to which no asset or stage job refers; 0: forever"),
    ] = 0.0
