"""Every error that geomill raises on purpose.

    GeomillError                       has a stable `code`, a message and a remedy
    ├── InputError                     the caller's data is wrong: names field, value and remedy
    │   ├── SettingsError              an environment variable or option
    │   ├── WorkflowError              a workflow file; carries every problem found in it
    │   ├── ExpressionError            a template that does not parse or does not evaluate
    │   ├── InputsError                a job's inputs; carries every problem found in them
    │   ├── SourceError                the file to publish: missing, empty, of another kind
    │   ├── InvalidName                the name of a zone, container or object
    │   ├── BackupInvalid              a backup that is not whole, or was changed
    │   └── UnknownReferenceSystem     coordinates are not to be had in it
    ├── NotFoundError                  no such workflow, job, handler
    ├── ConflictError                  the state of things forbids it
    │   ├── IllegalTransition          names both states
    │   ├── AssetExists                it can be overwritten
    │   ├── AssetState                 its state forbids what was asked
    │   ├── RevisionChanged            it is not the one that the caller saw
    │   ├── PlatformInactive           it takes no submissions
    │   └── DestructiveMigration       carries the SQL that was refused
    ├── Unauthenticated                nobody knows who asks
    ├── Forbidden                      who asks may not
    ├── TooManyRequests                who asks must wait; says how long
    ├── UnavailableError               the outside is not there or not fit
    │   ├── DatabaseUnreachable
    │   ├── DatabaseUnfit              too old, or without PostGIS
    │   ├── EmbeddedError              the private PostgreSQL cluster
    │   └── StorageUnavailable         a store that is not reached, is too busy, or lacks space
    │       └── StorageDenied          one that refuses our credentials
    └── HandlerError (in sdk)          a handler's own failure

Messages are whole sentences without a final stop; the remedy says what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import ClassVar


class GeomillError(Exception):
    code: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input: where it is, what is wrong, what to do."""

    where: str
    message: str
    hint: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file else ""
        where = f"{self.where}: " if self.where else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{where}{self.message}{hint}"


class InputError(GeomillError):
    code = "invalid_input"
    exit_code = 2

    def __init__(self, message: str, *, remedy: str = "", problems: Iterable[Problem] = ()) -> None:
        super().__init__(message, remedy=remedy)
        self.problems: tuple[Problem, ...] = tuple(problems)


class SettingsError(InputError):
    code = "invalid_settings"


class WorkflowError(InputError):
    code = "invalid_workflow"


class ExpressionError(InputError):
    code = "invalid_expression"


class InputsError(InputError):
    code = "invalid_inputs"


class SourceError(InputError):
    code = "unusable_source"


class InvalidName(InputError):  # noqa: N818
    code = "invalid_name"


class BackupInvalid(InputError):  # noqa: N818
    code = "invalid_backup"
    exit_code = 1


class UnknownReferenceSystem(InputError):  # noqa: N818
    code = "unknown_crs"


class NotFoundError(GeomillError):
    code = "not_found"
    exit_code = 2


class ConflictError(GeomillError):
    code = "conflict"


class IllegalTransition(ConflictError):  # noqa: N818  the name says what happened
    code = "illegal_transition"

    def __init__(self, machine: str, source: str, target: str, allowed: Sequence[str]) -> None:
        self.machine, self.source, self.target = machine, source, target
        after = ", ".join(allowed) or "nothing: it is final"
        super().__init__(f"a {machine} cannot go from {source} to {target}; after {source} comes {after}")


class AssetExists(ConflictError):  # noqa: N818
    code = "asset_exists"


class AssetState(ConflictError):  # noqa: N818
    code = "asset_state"


class RevisionChanged(ConflictError):  # noqa: N818
    code = "revision_changed"


class PlatformInactive(ConflictError):  # noqa: N818
    code = "platform_inactive"


class DestructiveMigration(ConflictError):  # noqa: N818
    code = "destructive_migration"

    def __init__(self, message: str, *, statements: Sequence[str], remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.statements = tuple(statements)


class Unauthenticated(GeomillError):  # noqa: N818
    code = "unauthenticated"


class Forbidden(GeomillError):  # noqa: N818
    code = "forbidden"


class TooManyRequests(GeomillError):  # noqa: N818
    code = "too_many_requests"

    def __init__(self, message: str, *, remedy: str = "", retry_after: float = 1.0) -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after = retry_after


class UnavailableError(GeomillError):
    code = "unavailable"


class DatabaseUnreachable(UnavailableError):  # noqa: N818
    code = "database_unreachable"


class DatabaseUnfit(UnavailableError):  # noqa: N818
    code = "database_unfit"


class EmbeddedError(UnavailableError):
    code = "embedded_database"


class StorageUnavailable(UnavailableError):  # noqa: N818
    code = "storage_unavailable"


class StorageDenied(StorageUnavailable):
    code = "storage_denied"


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names the closest known word, or lists what is known when nothing is close."""
    names = sorted(known)
    lowered = {candidate.lower(): candidate for candidate in names}
    close = get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{lowered[close[0]]}'?"
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"known: {shown}" if names else "none is known"
