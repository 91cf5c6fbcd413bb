"""Settings: one small class per concern, read once in `main()` or `create_app()` and passed in.

Every variable of ours starts with `GEOMILL_`; an unknown one is an error, because a typo that is swallowed is
a setting that is silently not set. The specification's own names keep working without the prefix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from platformdirs import user_data_path
from pydantic import AliasChoices, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from geomill.domain.message import JOBS_QUEUE, TASK_QUEUES
from geomill.errors import Problem, SettingsError, nearest

PREFIX = "GEOMILL_"


class _Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", case_sensitive=False)


def _split(value: object) -> object:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


class DatabaseSettings(_Settings):
    """`database_url` names an existing server; without it geomill runs a private cluster under `data`."""

    database_url: Annotated[str | None, Field(description="postgresql://… of an existing server")] = None
    data: Annotated[Path, Field(description="Folder of the private cluster and of all local data")] = Field(
        default_factory=lambda: user_data_path("geomill", appauthor=False)
    )

    @field_validator("database_url")
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
    job_queue_name: Annotated[str, Field(description="Queue of job submissions")] = Field(
        default=JOBS_QUEUE, validation_alias=AliasChoices("JOB_QUEUE_NAME", "GEOMILL_JOB_QUEUE_NAME")
    )
    queues: Annotated[list[str], NoDecode, Field(description="Task queues beside the default ones")] = []

    _lists = field_validator("queues", mode="before")(_split)

    @property
    def task_queues(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*TASK_QUEUES, *self.queues)))


class Settings:
    """All concerns of one process."""

    CONCERNS: ClassVar[tuple[type[_Settings], ...]] = (DatabaseSettings, WorkflowSettings, QueueSettings)

    def __init__(self, environ: Mapping[str, str], *, data: Path | None = None, workflows: Sequence[Path] = ()) -> None:
        """`data` and `workflows` come from the command line and win over the environment."""
        _refuse_unknown(environ)
        self.database = _read(DatabaseSettings, **({"data": data} if data else {}))
        self.workflow = _read(WorkflowSettings, **({"workflows": list(workflows)} if workflows else {}))
        self.queue = _read(QueueSettings)


def variables() -> dict[str, str]:
    """Every environment variable that is read, with its description."""
    found: dict[str, str] = {}
    for concern in Settings.CONCERNS:
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
        problems = [Problem(PREFIX + str(e["loc"][0]).upper(), e["msg"], _shown(e)) for e in error.errors()]
        raise SettingsError(f"a setting is wrong: {problems[0]}", problems=problems) from error


def _shown(error: Any) -> str:
    """The value that was refused, unless it may hold a password."""
    return "" if error["loc"][0] == "database_url" else f"got {str(error['input'])[:80]!r}"


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    known = variables()
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            raise SettingsError(f"the environment variable {name} is not known", remedy=nearest(name, known))
