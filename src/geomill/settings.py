"""Settings: one small class per concern, read once in `main()` or `create_app()` and passed in.

Every variable of ours starts with `GEOMILL_`; an unknown one is an error, because a typo that is swallowed is
a setting that is silently not set. A few names that deployments already use keep working without the prefix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar
from urllib.parse import urlsplit

from platformdirs import user_data_path
from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from geomill.domain.access.signed_link import LONGEST_SECONDS
from geomill.domain.engine.attendance import LONGEST_JOB_QUEUE
from geomill.domain.engine.callback import Allowance
from geomill.domain.engine.message import JOBS_QUEUE, TASK_QUEUES
from geomill.domain.location import parse_location
from geomill.errors import InputError, Problem, SettingsError, nearest
from geomill.telemetry.logging import LogFormat, LogLevel

PREFIX = "GEOMILL_"
SECRET = (
    "database_url", "external_database_url", "loader_database_url", "reader_database_url",
    "callback_secret", "link_secret", "metrics_key", "key", "bronze", "silver", "external",
    "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL",
)  # fmt: skip
"""Fields that may hold a password: no message shows their value."""

ASYMMETRIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


class _Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", case_sensitive=False)


def _split(value: object) -> object:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


class DatabaseSettings(_Settings):
    """`database_url` names an existing server; without it geomill runs a private cluster under `data`."""

    database_url: Annotated[str | None, Field(description="postgresql://… of an existing server")] = None
    external_database_url: Annotated[
        str | None,
        Field(description="postgresql://… of the external zone's database"),
    ] = None
    loader_database_url: Annotated[
        str | None,
        Field(description="postgresql://… as whom task processes load features; the worker's own when absent"),
    ] = None
    reader_database_url: Annotated[
        str | None,
        Field(description="postgresql://… as whom a gateway serves; its own when absent"),
    ] = None
    data: Annotated[Path, Field(description="Folder of the private cluster and of all local data")] = Field(
        default_factory=lambda: user_data_path("geomill", appauthor=False)
    )

    @field_validator("database_url", "external_database_url", "loader_database_url", "reader_database_url")
    @classmethod
    def _scheme(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("postgresql://", "postgres://")):
            raise ValueError("must start with postgresql://")
        return value


class WorkflowSettings(_Settings):
    """Where workflows and handlers come from, beside those that geomill carries and those found by entry points."""

    workflows: Annotated[list[Path], NoDecode, Field(description="Folders of workflow files, comma-separated")] = []
    handlers: Annotated[list[str], NoDecode, Field(description="Modules that register handlers, comma-separated")] = []

    _lists = field_validator("workflows", "handlers", mode="before")(_split)


class QueueSettings(_Settings):
    job_queue_name: Annotated[
        str, Field(min_length=1, max_length=LONGEST_JOB_QUEUE, description="Queue of job submissions")
    ] = Field(default=JOBS_QUEUE, validation_alias=AliasChoices("JOB_QUEUE_NAME", "GEOMILL_JOB_QUEUE_NAME"))
    queues: Annotated[list[str], NoDecode, Field(description="Task queues beside the default ones")] = []

    _lists = field_validator("queues", mode="before")(_split)

    @property
    def task_queues(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*TASK_QUEUES, *self.queues)))


class EngineSettings(_Settings):
    """How processes notice that another one is gone. A crash is seen by the lock that its session held, within a look
    or two; the threshold is for processes that are silent although their session is there. It must be the same in all
    processes: a worker ends its tasks before the others give them away."""

    heartbeat_interval_sec: Annotated[float, Field(gt=0, description="Seconds between two heartbeats of a process")] = (
        Field(default=5.0, validation_alias=AliasChoices("HEARTBEAT_INTERVAL_SEC", "GEOMILL_HEARTBEAT_INTERVAL_SEC"))
    )
    orphan_threshold_sec: Annotated[
        float, Field(gt=0, description="Silence in seconds after which a process counts as dead")
    ] = Field(default=25.0, validation_alias=AliasChoices("ORPHAN_THRESHOLD_SEC", "GEOMILL_ORPHAN_THRESHOLD_SEC"))
    orphan_scan_interval_sec: Annotated[
        float, Field(gt=0, description="Seconds between two looks for dead processes and what they left")
    ] = Field(
        default=1.0, validation_alias=AliasChoices("ORPHAN_SCAN_INTERVAL_SEC", "GEOMILL_ORPHAN_SCAN_INTERVAL_SEC")
    )
    dispatch_timeout_sec: Annotated[
        float,
        Field(
            ge=0,
            le=31_536_000,
            description="How long a task waits in a queue that no worker serves, before it fails; 0: for ever",
        ),
    ] = 86_400.0
    max_deliveries: Annotated[
        int, Field(ge=1, description="Workers that a task may take down with it before its attempt fails")
    ] = 4

    @property
    def beat_seconds(self) -> float:
        """At least five heartbeats before silence counts as death."""
        return min(self.heartbeat_interval_sec, self.orphan_threshold_sec / 5)


class RetentionSettings(_Settings):
    """How long what nobody needs any more is kept."""

    keep_details_days: Annotated[
        float,
        Field(
            ge=0,
            le=36_500,
            description="Days that the details and large outputs of a job are kept after its end; 0: for ever",
        ),
    ] = 90.0
    keep_failed_days: Annotated[
        float,
        Field(
            ge=0,
            le=36_500,
            description="Days that the data of a revision is kept which failed, was cancelled, or was superseded"
            " before it completed; 0: for ever",
        ),
    ] = 30.0
    keep_superseded_days: Annotated[
        float,
        Field(
            ge=0,
            le=36_500,
            description="Days that the data of a completed revision is kept after another took its place; 0: for ever",
        ),
    ] = 0.0
    keep_jobs_days: Annotated[
        float,
        Field(ge=0, le=36_500, description="Days that jobs are kept to which nothing refers; 0: for ever"),
    ] = 0.0


class WorkerSettings(_Settings):
    """Handlers that are not async run in processes of their own. None of this concerns the async ones but the drain."""

    task_processes: Annotated[
        int | None,
        Field(ge=1, le=1000, description="Handler processes that a worker keeps ready; the CPUs when absent"),
    ] = None
    task_memory_mb: Annotated[
        int | None, Field(ge=64, description="Memory of one handler process, beyond which its task fails; no limit")
    ] = None
    task_spare: Annotated[
        int, Field(ge=0, le=100, description="Tasks beyond a full worker's slots, for platforms that have none of them")
    ] = 1
    task_recycle: Annotated[int, Field(ge=1, description="Tasks that one handler process runs before a fresh one")] = (
        100
    )
    task_network: Annotated[
        Literal["auto", "open"],
        Field(description="auto: handler processes have a network only if zones or database need one; open: always"),
    ] = "auto"
    task_environment: Annotated[
        list[str], NoDecode, Field(description="Variables that handlers need beside the usual ones, comma-separated")
    ] = []
    scratch: Annotated[
        Path | None, Field(description="Folder of what tasks need on their way; `scratch` in the data folder if absent")
    ] = None
    drain_seconds: Annotated[
        float, Field(ge=0, le=86_400, description="How long a worker that is told to stop waits for its tasks")
    ] = 30.0

    _lists = field_validator("task_environment", mode="before")(_split)


class PlatformSettings(_Settings):
    """What happens to data that is submitted without naming a workflow."""

    raster_workflow: Annotated[str, Field(description="Workflow of rasters whose submitter names none")] = (
        "raster_processing"
    )
    vector_workflow: Annotated[str, Field(description="Workflow of vectors whose submitter names none")] = (
        "vector_processing"
    )


class GatewaySettings(_Settings):
    """Where the HTTP API listens."""

    gateway_host: Annotated[str, Field(description="Address that the gateway listens on")] = "127.0.0.1"
    gateway_port: Annotated[int, Field(ge=0, le=65_535, description="Port that the gateway listens on")] = 8000


class ConnectionSettings(_Settings):
    """What a connection to gateway or services may cost, and how much memory such a process may have."""

    trusted_proxies: Annotated[
        list[str],
        NoDecode,
        Field(description="Addresses and networks whose X-Forwarded-For is believed, comma-separated; none by default"),
    ] = []
    head_limit: Annotated[int, Field(ge=4096, description="Bytes of the largest request head")] = 65_536
    head_seconds: Annotated[float, Field(gt=0, le=600, description="Seconds in which a request head must be there")] = (
        10.0
    )
    body_seconds: Annotated[float, Field(gt=0, le=3600, description="Seconds in which a body must be there")] = 60.0
    connections_per_address: Annotated[
        int, Field(ge=1, description="Connections of one address at once; trusted proxies have no limit")
    ] = 200
    streams_per_caller: Annotated[int, Field(ge=1, description="Event streams of one caller at once")] = 20
    serve_memory_mb: Annotated[
        int, Field(ge=512, description="Memory beyond which a gateway or server ends, to be started again")
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
    """Where tiles, features and catalogue are served alone, and how links to what is not public are signed."""

    serve_port: Annotated[int, Field(ge=0, le=65_535, description="Port that `geomill serve` listens on")] = 8001
    link_secret: Annotated[
        Annotated[SecretStr, Field(min_length=32)] | None,
        Field(description="Signs links; the same on all machines. A file in the data folder when absent"),
    ] = None
    external_url: Annotated[
        str | None, Field(description="Where the external server is reached; begins the links to what is public")
    ] = None
    link_seconds: Annotated[
        int, Field(ge=60, le=LONGEST_SECONDS, description="How long a signed link opens, unless asked otherwise")
    ] = 86_400


class AccessSettings(_Settings):
    """Who may call the gateway beside the holders of its keys, and how much."""

    oidc_issuer: Annotated[
        str | None, Field(description="Issuer whose tokens (JWT) are accepted; none when absent")
    ] = None
    oidc_audience: Annotated[str | None, Field(description="What a token's `aud` must name; needed with an issuer")] = (
        None
    )
    oidc_jwks_url: Annotated[
        str | None, Field(description="Where the issuer's keys are; its discovery document says so when absent")
    ] = None
    oidc_role_claim: Annotated[str, Field(min_length=1, description="Claim with the roles; dots lead inwards")] = (
        "roles"
    )
    oidc_platform_claim: Annotated[str, Field(min_length=1, description="Claim with a submitter's platform")] = (
        "platform_id"
    )
    oidc_subject_claim: Annotated[
        Literal["sub", "preferred_username", "email"], Field(description="Claim that names the caller")
    ] = "sub"
    oidc_algorithms: Annotated[
        list[str], NoDecode, Field(min_length=1, description="Accepted signatures, asymmetric ones only")
    ] = ["RS256", "ES256"]
    oidc_leeway_seconds: Annotated[float, Field(ge=0, le=300, description="How far the issuer's clock may be off")] = (
        30.0
    )
    submit_rate: Annotated[float, Field(gt=0, description="Submissions a second of one caller, over time")] = 100.0
    submit_burst: Annotated[int, Field(ge=1, description="Submissions of one caller at once")] = 1000
    metrics_key: Annotated[
        Annotated[SecretStr, Field(min_length=32)] | None,
        Field(description="Opens `/metrics` of `geomill serve --zone external`, which knows no other keys"),
    ] = None
    body_limit: Annotated[int, Field(ge=1000, description="Bytes of the largest request body")] = 1_000_000
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


class ClientSettings(_Settings):
    """Which gateway the command line calls, and as whom."""

    url: Annotated[str | None, Field(description="Gateway that the command line calls")] = None
    key: Annotated[SecretStr | None, Field(description="API key that the command line shows to it")] = None

    @field_validator("url")
    @classmethod
    def _scheme(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("must start with https:// or http://")
        return value


class LogSettings(_Settings):
    """How the roles log."""

    log_format: Annotated[LogFormat, Field(description="json, text, or auto: text on a terminal")] = "auto"
    log_level: Annotated[LogLevel, Field(description="debug, info, warning or error")] = "info"


class CallbackSettings(_Settings):
    """How the end of a job is told to whoever gave a `callback_url`."""

    callback_secret: Annotated[
        Annotated[SecretStr, Field(min_length=16)] | None,
        Field(description="Signs callbacks (HMAC-SHA256); without it they are not signed"),
    ] = None
    callback_allow: Annotated[
        list[str],
        NoDecode,
        Field(description="Hosts and networks beside the public internet that may be called, comma-separated"),
    ] = []
    public_url: Annotated[str | None, Field(description="Where the gateway is reached; begins the links it gives")] = (
        None
    )

    _lists = field_validator("callback_allow", mode="before")(_split)

    @field_validator("callback_allow")
    @classmethod
    def _readable(cls, value: list[str]) -> list[str]:
        Allowance.of(value)
        return value


class StorageSettings(_Settings):
    """Where the zones lie, and how their stores are reached. Credentials have the names that other tools use."""

    bronze: Annotated[str | None, Field(description="Where sources lie: a folder, az://… or s3://…")] = None
    silver: Annotated[str | None, Field(description="Where results lie")] = None
    external: Annotated[str | None, Field(description="Where public copies lie")] = None
    azure_connection_strings: Annotated[
        SecretStr | None, Field(description="Connection strings of Azure storage accounts, separated by spaces")
    ] = Field(default=None, validation_alias=AliasChoices("AZURE_STORAGE_CONNECTION_STRING"))
    azure_key: Annotated[SecretStr | None, Field(description="Key of the Azure storage account")] = Field(
        default=None, validation_alias=AliasChoices("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCESS_KEY")
    )
    azure_sas_token: Annotated[SecretStr | None, Field(description="Shared access signature of the account")] = Field(
        default=None, validation_alias=AliasChoices("AZURE_STORAGE_SAS_TOKEN")
    )
    azure_client_id: Annotated[str | None, Field(description="Which managed identity of Azure to use")] = Field(
        default=None, validation_alias=AliasChoices("AZURE_CLIENT_ID", "MANAGED_IDENTITY_CLIENT_ID")
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
    aws_endpoint_url: Annotated[str | None, Field(description="URL of a server other than Amazon's that speaks S3")] = (
        Field(default=None, validation_alias=AliasChoices("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))
    )
    space_warning_mb: Annotated[
        int, Field(ge=0, description="Megabytes free on a disk of ours, below which it counts as nearly full")
    ] = 5_000
    storage_timeout_sec: Annotated[float, Field(gt=0, le=600, description="Longest time of one request to a store")] = (
        30.0
    )
    storage_retry_sec: Annotated[
        float, Field(ge=0, le=280, description="How long a request that a store did not answer is tried again")
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
            raise ValueError("must be http:// or https:// with a host, and without a password")
        return value


class Settings:
    """All concerns of one process."""

    CONCERNS: ClassVar[tuple[type[_Settings], ...]] = (
        DatabaseSettings,
        WorkflowSettings,
        QueueSettings,
        EngineSettings,
        RetentionSettings,
        WorkerSettings,
        PlatformSettings,
        GatewaySettings,
        ConnectionSettings,
        ServingSettings,
        AccessSettings,
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
        """`data`, `workflows` and `url` come from the command line and win over the environment."""
        _refuse_unknown(environ)
        self.database = _read(DatabaseSettings, **({"data": data} if data else {}))
        self.workflow = _read(WorkflowSettings, **({"workflows": list(workflows)} if workflows else {}))
        self.queue = _read(QueueSettings)
        self.engine = _read(EngineSettings)
        self.retention = _read(RetentionSettings)
        self.worker = _read(WorkerSettings)
        self.callback = _read(CallbackSettings)
        self.platform = _read(PlatformSettings)
        self.gateway = _read(GatewaySettings)
        self.connection = _read(ConnectionSettings)
        self.serving = _read(ServingSettings)
        self.access = _access()
        self.client = _read(ClientSettings, **({"url": url} if url else {}))
        self.log = _read(LogSettings)
        self.storage = _read(StorageSettings)


def variables(concerns: Sequence[type[BaseSettings]] | None = None) -> dict[str, str]:
    """Every environment variable that is read, or that these concerns read, with its description."""
    found: dict[str, str] = {}
    for concern in Settings.CONCERNS if concerns is None else concerns:
        for name, field in concern.model_fields.items():
            alias = field.validation_alias
            names = [str(choice) for choice in alias.choices] if isinstance(alias, AliasChoices) else [PREFIX + name]
            found.update({variable.upper(): field.description or "" for variable in names})
    return found


Concern = TypeVar("Concern", bound=_Settings)


def _read(concern: type[Concern], **given: Any) -> Concern:
    try:
        return concern(**given)
    except ValidationError as error:
        problems = [Problem(_variable(e), e["msg"], _shown(e)) for e in error.errors()]
        raise SettingsError(f"a setting is wrong: {problems[0]}", problems=problems) from None  # it shows the password


def _access() -> AccessSettings:
    found = _read(AccessSettings)
    if found.oidc_issuer and not found.oidc_audience:
        raise SettingsError(
            "GEOMILL_OIDC_ISSUER is set without GEOMILL_OIDC_AUDIENCE: tokens for others would be accepted",
            remedy="set it to what the issuer writes into `aud` for this gateway",
        )
    return found


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _variable(error: Any) -> str:
    name = str(error["loc"][0]).upper()
    return name if name in variables() else PREFIX + name


def _shown(error: Any) -> str:
    """The value that was refused, unless it may hold a password."""
    return "" if error["loc"][0] in SECRET else f"got {str(error['input'])[:80]!r}"


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    known = variables()
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            raise SettingsError(f"the environment variable {name} is not known", remedy=nearest(name, known))
