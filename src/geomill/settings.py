"""Settings: one small class per concern, read once in `main()` or `create_app()` and passed in.

The names of all variables start with `GEOMILL_`. An unknown variable is an error, so a typo cannot silently leave a
setting unset. A few names that deployments already use keep working without the prefix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar
from urllib.parse import urlsplit

from platformdirs import user_data_path
from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from geomill.domain.access.confidential import masked_url
from geomill.domain.access.signed_link import LONGEST_SECONDS
from geomill.domain.addresses import is_loopback
from geomill.domain.assets.factory import PIPELINE, PUBLIC_CLOUD, FactoryPlace, check_cloud, check_factory
from geomill.domain.assets.source_url import check_prefix
from geomill.domain.database_identity import client_of, may_carry_token, with_identity
from geomill.domain.engine.attendance import LONGEST_JOB_QUEUE
from geomill.domain.engine.callback import Allowance
from geomill.domain.engine.message import JOBS_QUEUE, TASK_QUEUES
from geomill.domain.location import parse_location
from geomill.errors import InputError, Problem, SettingsError, nearest
from geomill.telemetry.logging import LogFormat, LogLevel

PREFIX = "GEOMILL_"
SECRET = (
    "database_url", "external_database_url", "loader_database_url", "reader_database_url",
    "callback_secret", "link_secret", "metrics_key", "oidc_client_secret", "key", "bronze", "silver", "external",
    "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL",
)  # fmt: skip
"""Fields that may hold a password. No message shows their values."""

MASK = "…"

DATABASE_URLS = ("database_url", "external_database_url", "loader_database_url", "reader_database_url")

ASYMMETRIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


class _Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", case_sensitive=False)


def _split(value: object) -> object:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


class DatabaseSettings(_Settings):
    """The databases. Without `database_url`, geomill runs a private cluster in the folder `data`."""

    database_auth: Annotated[
        Literal["password", "azure"],
        Field(description="password: as in the URLs; azure: URLs without a password use a token of a managed identity"),
    ] = "password"
    database_url: Annotated[str | None, Field(description="postgresql://… of an existing server")] = None
    external_database_url: Annotated[
        str | None,
        Field(description="postgresql://… of the external zone's database"),
    ] = None
    loader_database_url: Annotated[
        str | None,
        Field(description="postgresql://… for task processes that load features; default: the worker's own"),
    ] = None
    reader_database_url: Annotated[
        str | None,
        Field(description="postgresql://… for the serving part of a gateway; default: the gateway's own"),
    ] = None
    data: Annotated[Path, Field(description="Folder for the private cluster and all local data")] = Field(
        default_factory=lambda: user_data_path("geomill", appauthor=False)
    )

    @field_validator(*DATABASE_URLS)
    @classmethod
    def _scheme(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("postgresql://", "postgres://")):
            raise ValueError("must start with postgresql://")
        return value

    def with_tokens(self, client_id: str) -> Self:
        """Return the same settings, in which the URLs without a password use a token."""
        urls = {name: url for name in DATABASE_URLS if (url := getattr(self, name))}
        if self.database_auth == "azure":
            urls = {name: with_identity(url, client_id) for name, url in urls.items()}
        for name, url in urls.items():
            if client_of(url) is not None and not may_carry_token(url):
                raise SettingsError(
                    f"{PREFIX}{name.upper()} may send a token without encryption",
                    remedy="add sslmode=verify-full or sslmode=require to it, or set a password",
                )
        return self.model_copy(update=urls)


class WorkflowSettings(_Settings):
    """The sources of workflows and handlers, beside the built-in ones and those from entry points."""

    workflows: Annotated[list[Path], NoDecode, Field(description="Folders of workflow files, comma-separated")] = []
    handlers: Annotated[list[str], NoDecode, Field(description="Modules that register handlers, comma-separated")] = []

    _lists = field_validator("workflows", "handlers", mode="before")(_split)


class QueueSettings(_Settings):
    job_queue_name: Annotated[
        str, Field(min_length=1, max_length=LONGEST_JOB_QUEUE, description="Queue of job submissions")
    ] = Field(default=JOBS_QUEUE, validation_alias=AliasChoices("JOB_QUEUE_NAME", "GEOMILL_JOB_QUEUE_NAME"))
    queues: Annotated[
        list[str], NoDecode, Field(description="Task queues in addition to the default ones, comma-separated")
    ] = []

    _lists = field_validator("queues", mode="before")(_split)

    @property
    def task_queues(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*TASK_QUEUES, *self.queues)))


class BrokerSettings(_Settings):
    """Which messages wake workers, and where other applications may submit."""

    broker: Annotated[
        Literal["postgres", "servicebus"],
        Field(description="`postgres`, or `servicebus` for Azure Service Bus beside the database"),
    ] = "postgres"
    service_bus_connection_string: Annotated[
        SecretStr | None, Field(description="Connection string of the namespace, for development")
    ] = Field(
        default=None,
        validation_alias=AliasChoices("SERVICE_BUS_CONNECTION_STRING", "GEOMILL_SERVICE_BUS_CONNECTION_STRING"),
    )
    service_bus_namespace: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z0-9.-]+$",
            description="Namespace of Service Bus, as `name` or `name.servicebus.windows.net`",
        ),
    ] = Field(default=None, validation_alias=AliasChoices("SERVICE_BUS_NAMESPACE", "GEOMILL_SERVICE_BUS_NAMESPACE"))
    service_bus_certificates: Annotated[
        Path | None, Field(description="File of authorities that Service Bus's certificate may come from")
    ] = None
    service_bus_client_id: Annotated[
        str | None, Field(description="Client id of the managed identity for Service Bus")
    ] = Field(default=None, validation_alias=AliasChoices("MANAGED_IDENTITY_CLIENT_ID", "AZURE_CLIENT_ID"))


class EngineSettings(_Settings):
    """How processes notice that another one has died.

    A crash releases the lock of the process's session, and the next scan or two notice it. The threshold is for
    processes that are silent although their session is alive. It must be the same in all processes, because a worker
    ends its tasks before others give them away.
    """

    heartbeat_interval_sec: Annotated[float, Field(gt=0, description="Seconds between two heartbeats of a process")] = (
        Field(default=5.0, validation_alias=AliasChoices("HEARTBEAT_INTERVAL_SEC", "GEOMILL_HEARTBEAT_INTERVAL_SEC"))
    )
    orphan_threshold_sec: Annotated[
        float, Field(gt=0, description="Seconds of silence after which a process counts as dead")
    ] = Field(default=25.0, validation_alias=AliasChoices("ORPHAN_THRESHOLD_SEC", "GEOMILL_ORPHAN_THRESHOLD_SEC"))
    orphan_scan_interval_sec: Annotated[
        float, Field(gt=0, description="Seconds between two scans for dead processes and their work")
    ] = Field(
        default=1.0, validation_alias=AliasChoices("ORPHAN_SCAN_INTERVAL_SEC", "GEOMILL_ORPHAN_SCAN_INTERVAL_SEC")
    )
    dispatch_timeout_sec: Annotated[
        float,
        Field(
            ge=0,
            le=31_536_000,
            description="Seconds that a task waits in a queue that no worker serves before it fails; 0: forever",
        ),
    ] = 86_400.0
    max_deliveries: Annotated[
        int, Field(ge=1, description="Number of workers that may die while they run a task before its attempt fails")
    ] = 4

    @property
    def beat_seconds(self) -> float:
        """The heartbeat interval, shortened so that five heartbeats fit into the threshold."""
        return min(self.heartbeat_interval_sec, self.orphan_threshold_sec / 5)


class RetentionSettings(_Settings):
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


class UploadSettings(_Settings):
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
    ] = []
    upload_from_allow: Annotated[
        list[str],
        NoDecode,
        Field(description="Hosts and networks outside the public internet that files may be fetched from"),
    ] = []

    _lists = field_validator("upload_from", "upload_from_allow", mode="before")(_split)

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


class ExtractSettings(_Settings):
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


class WorkerSettings(_Settings):
    """Handler processes. Handlers that are not async run in them; async ones are subject to the drain time only."""

    task_processes: Annotated[
        int | None,
        Field(ge=1, le=1000, description="Handler processes that a worker keeps ready; default: the number of CPUs"),
    ] = None
    task_memory_mb: Annotated[
        int | None,
        Field(
            ge=64, description="Megabytes of memory of one handler process; beyond it the task fails; default: no limit"
        ),
    ] = None
    task_spare: Annotated[
        int,
        Field(ge=0, le=100, description="Extra tasks that a full worker takes from platforms that have no task in it"),
    ] = 1
    task_recycle: Annotated[
        int, Field(ge=1, description="Tasks that a handler process runs before a new one replaces it")
    ] = 100
    task_network: Annotated[
        Literal["auto", "open"],
        Field(
            description="auto: handler processes have network access only if zones or database need it; open: always"
        ),
    ] = "auto"
    task_environment: Annotated[
        list[str],
        NoDecode,
        Field(description="Environment variables to pass to handlers in addition to the usual ones, comma-separated"),
    ] = []
    scratch: Annotated[
        Path | None, Field(description="Folder for temporary files of tasks; default: `scratch` in the data folder")
    ] = None
    drain_seconds: Annotated[
        float, Field(ge=0, le=86_400, description="Seconds that a stopping worker waits for its tasks")
    ] = 30.0
    handler_wait_seconds: Annotated[
        float,
        Field(ge=0, le=86_400, description="Seconds that tasks wait for a handler that no worker of their queue has"),
    ] = 60.0

    _lists = field_validator("task_environment", mode="before")(_split)


class PlatformSettings(_Settings):
    """The workflows for data that is submitted without naming one, and who copies public files."""

    raster_workflow: Annotated[str, Field(description="Workflow for rasters if the submission names none")] = (
        "raster_processing"
    )
    vector_workflow: Annotated[str, Field(description="Workflow for vectors if the submission names none")] = (
        "vector_processing"
    )
    large_raster_workflow: Annotated[
        str, Field(description="Workflow for large rasters if the submission names none")
    ] = "process_large_raster"
    large_raster_mb: Annotated[
        int,
        Field(ge=0, description="Megabytes from which a raster file is large; 0: all go to the workflow for rasters"),
    ] = 1024
    exporter: Annotated[
        Literal["geomill", "data_factory"],
        Field(description="Who copies public files to the external zone: workers, or a pipeline of Azure Data Factory"),
    ] = "geomill"
    data_factory: Annotated[
        str | None, Field(description="Resource id of the factory: /subscriptions/…/factories/NAME; default: none")
    ] = None
    data_factory_pipeline: Annotated[
        str, Field(pattern=PIPELINE, description="Pipeline of the factory that copies the files")
    ] = "geomill-export"
    data_factory_url: Annotated[str, Field(description="URL of Azure's resource manager")] = PUBLIC_CLOUD

    @field_validator("data_factory")
    @classmethod
    def _resource(cls, value: str | None) -> str | None:
        return check_factory(value) if value else None

    @field_validator("data_factory_url")
    @classmethod
    def _cloud(cls, value: str) -> str:
        return check_cloud(value)

    @property
    def factory(self) -> FactoryPlace | None:
        if not self.data_factory:
            return None
        return FactoryPlace(factory=self.data_factory, pipeline=self.data_factory_pipeline, url=self.data_factory_url)


class InspectionSettings(_Settings):
    """Limits of a look into a file before it is accepted."""

    inspect_seconds: Annotated[
        float, Field(gt=0, le=300, description="Seconds after which a look into a file is given up")
    ] = 20.0
    inspect_memory_mb: Annotated[
        int, Field(ge=256, description="Megabytes of memory of the process that looks into a file")
    ] = 1024
    inspect_copy_mb: Annotated[
        int, Field(ge=1, description="Megabytes up to which a file is fetched or unpacked to look into it")
    ] = 256
    inspect_processes: Annotated[
        int, Field(ge=1, le=100, description="Files that one gateway looks into at the same time")
    ] = 2


class GatewaySettings(_Settings):
    """The address of the HTTP API."""

    gateway_host: Annotated[str, Field(description="Address that the gateway listens on")] = "127.0.0.1"
    gateway_port: Annotated[int, Field(ge=0, le=65_535, description="Port that the gateway listens on")] = 8000


class ConnectionSettings(_Settings):
    """Limits on the connections and the memory of gateway and servers."""

    trusted_proxies: Annotated[
        list[str],
        NoDecode,
        Field(description="Addresses and networks whose X-Forwarded-For is trusted, comma-separated; default: none"),
    ] = []
    head_limit: Annotated[int, Field(ge=4096, description="Maximum size of a request head in bytes")] = 65_536
    head_seconds: Annotated[
        float, Field(gt=0, le=600, description="Seconds within which a request head must arrive")
    ] = 10.0
    body_seconds: Annotated[
        float, Field(gt=0, le=3600, description="Seconds within which a request body must arrive")
    ] = 60.0
    connections_per_address: Annotated[
        int, Field(ge=1, description="Maximum number of connections of one address; trusted proxies have no limit")
    ] = 200
    streams_per_caller: Annotated[int, Field(ge=1, description="Maximum number of event streams of one caller")] = 20
    serve_memory_mb: Annotated[
        int, Field(ge=512, description="Megabytes of memory beyond which a gateway or server exits, to be restarted")
    ] = 4096

    _lists = field_validator("trusted_proxies", mode="before")(_split)

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: list[str]) -> list[str]:
        for proxy in value:
            try:
                ip_network(proxy)
            except ValueError:
                raise ValueError(
                    f"'{proxy}' is not an address such as 10.0.0.5, or a network such as 10.0.0.0/8"
                ) from None
        return value

    @property
    def proxies(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(ip_network(proxy) for proxy in self.trusted_proxies)


class ServingSettings(_Settings):
    """The address of `geomill serve`, and the signing of links to data that is not public."""

    serve_port: Annotated[int, Field(ge=0, le=65_535, description="Port that `geomill serve` listens on")] = 8001
    link_secret: Annotated[
        Annotated[SecretStr, Field(min_length=32)] | None,
        Field(description="Secret that signs links, the same on all machines; default: a file in the data folder"),
    ] = None
    external_url: Annotated[
        str | None, Field(description="Public URL of the external server; links to public data begin with it")
    ] = None
    link_seconds: Annotated[
        int, Field(ge=60, le=LONGEST_SECONDS, description="Seconds that a signed link is valid by default")
    ] = 86_400


class AccessSettings(_Settings):
    """Callers of the gateway other than holders of its keys, and rate limits."""

    oidc_issuer: Annotated[str | None, Field(description="Issuer whose tokens (JWT) are accepted; default: none")] = (
        None
    )
    oidc_audience: Annotated[
        str | None, Field(description="Audience that a token's `aud` must contain; required with an issuer")
    ] = None
    oidc_jwks_url: Annotated[
        str | None, Field(description="URL of the issuer's keys; default: from its discovery document")
    ] = None
    oidc_role_claim: Annotated[
        str, Field(min_length=1, description="Claim with the roles; dots separate nested names")
    ] = "roles"
    oidc_platform_claim: Annotated[str, Field(min_length=1, description="Claim with a submitter's platform")] = (
        "platform_id"
    )
    oidc_subject_claim: Annotated[
        Literal["sub", "preferred_username", "email"], Field(description="Claim with the name of the caller")
    ] = "sub"
    oidc_algorithms: Annotated[
        list[str],
        NoDecode,
        Field(min_length=1, description="Accepted signature algorithms, asymmetric ones only, comma-separated"),
    ] = ["RS256", "ES256"]
    oidc_leeway_seconds: Annotated[
        float, Field(ge=0, le=300, description="Seconds by which the issuer's clock may differ")
    ] = 30.0
    submit_rate: Annotated[float, Field(gt=0, description="Submissions per second of one caller, on average")] = 100.0
    submit_burst: Annotated[int, Field(ge=1, description="Submissions of one caller in a burst")] = 1000
    metrics_key: Annotated[
        Annotated[SecretStr, Field(min_length=32)] | None,
        Field(description="Key for `/metrics` of `geomill serve --zone external`, which has no other keys"),
    ] = None
    body_limit: Annotated[int, Field(ge=1000, description="Maximum size of a request body in bytes")] = 1_000_000
    cors_origins: Annotated[
        list[str], NoDecode, Field(description="Origins whose web pages may call the API, comma-separated")
    ] = []

    _lists = field_validator("oidc_algorithms", "cors_origins", mode="before")(_split)

    @field_validator("oidc_issuer", "oidc_jwks_url")
    @classmethod
    def _encrypted(cls, value: str | None) -> str | None:
        parts = urlsplit(value or "")
        if value and not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))):
            raise ValueError("must start with https://, unless it is on this machine")
        return value

    @field_validator("oidc_algorithms")
    @classmethod
    def _asymmetric(cls, value: list[str]) -> list[str]:
        if unknown := [name for name in value if name not in ASYMMETRIC]:
            raise ValueError(f"{unknown[0]} is not one of {', '.join(ASYMMETRIC)}")
        return value

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, value: list[str]) -> list[str]:
        for origin in value:
            parts = urlsplit(origin)
            if parts.scheme not in ("http", "https") or origin != f"{parts.scheme}://{parts.netloc}":
                raise ValueError(f"'{origin}' is not an origin such as https://console.example.org")
        return value

    @field_validator("metrics_key")
    @classmethod
    def _one_word(cls, value: SecretStr | None) -> SecretStr | None:
        text = value.get_secret_value() if value else ""
        if not text.isascii() or not text.isprintable() or " " in text:
            raise ValueError("must be printable ASCII without a space, so that a header can carry it")
        return value

    @field_validator("oidc_audience")
    @classmethod
    def _not_empty(cls, value: str | None) -> str | None:
        return value or None


class ConsoleSettings(_Settings):
    """The console: how long a browser stays signed in, how people sign in, and its base map."""

    session_seconds: Annotated[
        int, Field(ge=300, le=30 * 86_400, description="Seconds after which a session of the console ends")
    ] = 43_200
    session_idle_seconds: Annotated[
        int, Field(ge=120, le=30 * 86_400, description="Seconds without a request after which a session ends")
    ] = 7200
    sign_in_link_seconds: Annotated[
        int, Field(ge=30, le=86_400, description="Seconds for which a one-time sign-in link works")
    ] = 900
    oidc_client_id: Annotated[
        str | None, Field(description="Client id of the console at the OIDC issuer; default: people sign in with keys")
    ] = None
    oidc_client_secret: Annotated[
        SecretStr | None, Field(description="Client secret of the console at the issuer; default: a public client")
    ] = None
    oidc_scopes: Annotated[
        str, Field(pattern=r"^[ -~]+$", description="Scopes that the console asks the issuer for")
    ] = "openid profile email"
    base_map_url: Annotated[
        str | None,
        Field(description="Tiles of a base map, https://…/{z}/{x}/{y}.png; default: an outline of the world"),
    ] = None
    base_map_attribution: Annotated[str, Field(max_length=200, description="Whom the base map credits")] = ""

    @field_validator("base_map_url")
    @classmethod
    def _tiles(cls, value: str | None) -> str | None:
        if not value:
            return None
        parts = urlsplit(value)
        local = parts.scheme == "http" and is_loopback(parts.hostname or "")
        if not (parts.scheme == "https" or local) or not parts.hostname or any(mark in value for mark in " ;,'\""):
            raise ValueError("must be one https:// URL")
        if any(name not in value for name in ("{z}", "{x}", "{y}")):
            raise ValueError("must contain {z}, {x} and {y}")
        return value


class ClientSettings(_Settings):
    """The gateway that the command line calls, and the key for it."""

    url: Annotated[str | None, Field(description="URL of the gateway that the command line calls")] = None
    key: Annotated[SecretStr | None, Field(description="API key that the command line sends to it")] = None

    @field_validator("url")
    @classmethod
    def _scheme(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("must start with https:// or http://")
        return value


class LogSettings(_Settings):
    """The format and the level of logs."""

    log_format: Annotated[LogFormat, Field(description="json, text, or auto: text on a terminal")] = "auto"
    log_level: Annotated[LogLevel, Field(description="debug, info, warning or error")] = "info"


class CallbackSettings(_Settings):
    """Callbacks: the calls to a job's `callback_url` when the job has ended."""

    callback_secret: Annotated[
        Annotated[SecretStr, Field(min_length=16)] | None,
        Field(description="Secret that signs callbacks (HMAC-SHA256); default: they are not signed"),
    ] = None
    callback_allow: Annotated[
        list[str],
        NoDecode,
        Field(description="Hosts and networks outside the public internet that callbacks may reach, comma-separated"),
    ] = []
    public_url: Annotated[
        str | None, Field(description="Public URL of the gateway; links in its answers begin with it")
    ] = None

    _lists = field_validator("callback_allow", mode="before")(_split)

    @field_validator("callback_allow")
    @classmethod
    def _readable(cls, value: list[str]) -> list[str]:
        Allowance.of(value)
        return value


class StorageSettings(_Settings):
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


class Settings:
    """All settings of one process."""

    CONCERNS: ClassVar[tuple[type[_Settings], ...]] = (
        DatabaseSettings,
        WorkflowSettings,
        QueueSettings,
        BrokerSettings,
        EngineSettings,
        RetentionSettings,
        UploadSettings,
        ExtractSettings,
        WorkerSettings,
        PlatformSettings,
        InspectionSettings,
        GatewaySettings,
        ConnectionSettings,
        ServingSettings,
        AccessSettings,
        ConsoleSettings,
        ClientSettings,
        LogSettings,
        CallbackSettings,
        StorageSettings,
    )

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        data: Path | None = None,
        workflows: Sequence[Path] = (),
        url: str | None = None,
    ) -> None:
        """Read all settings. `data`, `workflows` and `url` come from the command line and override the environment."""
        _refuse_unknown(environ)
        self.database = _read(DatabaseSettings, **({"data": data} if data else {}))
        self.workflow = _read(WorkflowSettings, **({"workflows": list(workflows)} if workflows else {}))
        self.queue = _read(QueueSettings)
        self.broker = _broker()
        self.engine = _read(EngineSettings)
        self.retention = _read(RetentionSettings)
        self.upload = _read(UploadSettings)
        self.extract = _read(ExtractSettings)
        self.worker = _read(WorkerSettings)
        self.callback = _read(CallbackSettings)
        self.platform = _platform()
        self.inspection = _read(InspectionSettings)
        self.gateway = _read(GatewaySettings)
        self.connection = _read(ConnectionSettings)
        self.serving = _read(ServingSettings)
        self.access = _access()
        self.console = _read(ConsoleSettings)
        self.client = _read(ClientSettings, **({"url": url} if url else {}))
        self.log = _read(LogSettings)
        self.storage = _read(StorageSettings)
        self.database = self.database.with_tokens(self.storage.azure_client_id or "")


GATEWAY_CONCERNS: tuple[type[_Settings], ...] = (
    WorkflowSettings, QueueSettings, PlatformSettings, InspectionSettings, GatewaySettings, ServingSettings,
    AccessSettings, ConsoleSettings, ConnectionSettings, CallbackSettings, LogSettings, StorageSettings,
    UploadSettings, ExtractSettings, RetentionSettings,
)  # fmt: skip
"""The settings that a gateway reads, beside those of the databases."""
GATEWAY_WITHHELD = ("GEOMILL_CALLBACK_SECRET", "GEOMILL_CALLBACK_ALLOW")
"""Variables of those classes that a gateway does not read."""


@dataclass(frozen=True, slots=True)
class SettingInEffect:
    """A setting as a process has it. Secrets in `value` and `default` are masked."""

    name: str
    value: Any
    default: Any
    is_set: bool
    secret: bool
    description: str


def gateway_settings(settings: Settings, **options: Any) -> list[SettingInEffect]:
    """Return the settings of a gateway, ordered by name. `options` of its command line override fields."""
    concerns = [
        settings.database,
        *(concern for concern in vars(settings).values() if isinstance(concern, GATEWAY_CONCERNS)),
    ]
    effective = [
        _in_effect(concern, name, field, options)
        for concern in concerns
        for name, field in type(concern).model_fields.items()
    ]
    return sorted((setting for setting in effective if setting.name not in GATEWAY_WITHHELD), key=lambda s: s.name)


def _in_effect(concern: _Settings, name: str, field: FieldInfo, options: Mapping[str, Any]) -> SettingInEffect:
    alias = field.validation_alias
    variable = str(alias.choices[0]) if isinstance(alias, AliasChoices) else PREFIX + name.upper()
    value = options.get(name, getattr(concern, name))
    default = field.get_default(call_default_factory=True, validated_data={})
    return SettingInEffect(
        name=variable,
        value=_masked(value),
        default=_masked(default),
        is_set=name in concern.model_fields_set or (name in options and value != default),
        secret=isinstance(value, SecretStr) or name in SECRET or "SecretStr" in str(field.annotation),
        description=field.description or "",
    )


def _masked(value: Any) -> Any:
    """Return a setting as JSON, without the secrets in it."""
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, list | tuple):
        return [_masked(entry) for entry in value]
    if isinstance(value, str) and "://" in value:
        return masked_url(value)
    return str(value) if isinstance(value, Path) else value


def variables(concerns: Sequence[type[BaseSettings]] | None = None) -> dict[str, str]:
    """Return the environment variables of the given settings classes, or of all, with their descriptions."""
    descriptions: dict[str, str] = {}
    for concern in Settings.CONCERNS if concerns is None else concerns:
        for name, field in concern.model_fields.items():
            alias = field.validation_alias
            names = [str(choice) for choice in alias.choices] if isinstance(alias, AliasChoices) else [PREFIX + name]
            descriptions.update({variable.upper(): field.description or "" for variable in names})
    return descriptions


Concern = TypeVar("Concern", bound=_Settings)


def _read(concern: type[Concern], **overrides: Any) -> Concern:
    try:
        return concern(**overrides)
    except ValidationError as error:
        problems = [Problem(_variable(e), e["msg"], _shown(e)) for e in error.errors()]
        raise SettingsError(
            f"a setting is invalid: {problems[0]}", problems=problems
        ) from None  # the cause shows passwords


def _broker() -> BrokerSettings:
    broker = _read(BrokerSettings)
    if broker.broker == "servicebus" and not (broker.service_bus_connection_string or broker.service_bus_namespace):
        raise SettingsError(
            "GEOMILL_BROKER is servicebus, but no namespace is named",
            remedy="set SERVICE_BUS_NAMESPACE, or SERVICE_BUS_CONNECTION_STRING for development",
        )
    return broker


def _access() -> AccessSettings:
    access = _read(AccessSettings)
    if access.oidc_issuer and not access.oidc_audience:
        raise SettingsError(
            "GEOMILL_OIDC_ISSUER is set without GEOMILL_OIDC_AUDIENCE: tokens for others would be accepted",
            remedy="set GEOMILL_OIDC_AUDIENCE to the `aud` that the issuer writes for this gateway",
        )
    return access


def _platform() -> PlatformSettings:
    platform = _read(PlatformSettings)
    if platform.exporter == "data_factory" and not platform.factory:
        raise SettingsError(
            "GEOMILL_EXPORTER is data_factory, and GEOMILL_DATA_FACTORY is not set",
            remedy="set GEOMILL_DATA_FACTORY to the resource id of the factory",
        )
    return platform


def _variable(error: Any) -> str:
    name = str(error["loc"][0]).upper()
    return name if name in variables() else PREFIX + name


def _shown(error: Any) -> str:
    """Return a hint with the refused value, unless it may hold a password."""
    return "" if error["loc"][0] in SECRET else f"got {str(error['input'])[:80]!r}"


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    valid = variables()
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in valid:
            raise SettingsError(f"the environment variable {name} is not a setting", remedy=nearest(name, valid))
