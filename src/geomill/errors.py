"""The errors that geomill raises on purpose.

    GeomillError                       has a stable `code`, a message and a remedy
    ├── InputError                     the caller's data is wrong: names field, value and remedy
    │   ├── SettingsError              an environment variable or option
    │   ├── WorkflowError              a workflow file; carries every problem found in it
    │   ├── ExpressionError            a template that does not parse or does not evaluate
    │   ├── InputsError                a job's inputs; carries every problem found in them
    │   ├── SourceError                the file to publish is missing, empty or of another kind
    │   ├── InvalidName                the name of a zone, container or object
    │   ├── BackupInvalid              a backup is incomplete or was changed
    │   ├── UploadTooLarge             a file, or the open uploads of a platform, exceed a limit
    │   ├── ChecksumMismatch           received bytes do not have the checksum that was announced
    │   └── UnknownReferenceSystem     coordinates cannot be given in this reference system
    ├── NotFoundError                  no such workflow, job, handler
    │   └── UploadGone                 the upload has failed or its bytes are lost
    ├── ConflictError                  the current state forbids the request
    │   ├── IllegalTransition          names both states
    │   ├── AssetExists                the asset exists; the caller may overwrite it
    │   ├── AssetState                 the asset's state forbids the request
    │   ├── RevisionChanged            the revision is not the one the caller expected
    │   ├── DownloadTooLarge           the file is too large for an answer; it can be ordered
    │   ├── PlatformInactive           the platform accepts no submissions
    │   ├── DataFactoryRefused         Azure Data Factory refuses a request
    │   ├── UploadOffset               the bytes do not continue where the upload stands
    │   ├── UploadLocked               another request is sending bytes of the upload
    │   └── DestructiveMigration       carries the SQL that was refused
    ├── Unauthenticated                the caller is unknown
    ├── Forbidden                      the caller may not do this
    ├── TooManyRequests                the caller must wait; says how long
    ├── UnavailableError               a server, a disk or a program is unavailable or unsuitable
    │   ├── DatabaseUnreachable
    │   ├── DatabaseUnfit              too old, or without PostGIS
    │   ├── EmbeddedError              the private PostgreSQL cluster
    │   ├── BusUnavailable             a queue of Azure Service Bus cannot be used
    │   ├── IdentityUnavailable        a managed identity of Azure gives no token
    │   ├── DataFactoryUnavailable     Azure Data Factory does not answer
    │   └── StorageUnavailable         a store is unreachable, too busy or full
    │       ├── StorageDenied          a store refuses geomill's credentials
    │       └── StorageFull            a disk has no room
    └── HandlerError (in sdk)          a handler's own failure

A message is a sentence without a capital letter and a final stop. The remedy is an instruction. One that differs
between HTTP and the command line is a `Remedy` of `remedies.py`: raise it in either form, and the border to the reader
words it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
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
    """One problem of an input: where it is, its message, and a hint on how to fix it."""

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


class UploadTooLarge(InputError):  # noqa: N818
    code = "upload_too_large"


class ChecksumMismatch(InputError):  # noqa: N818
    code = "checksum_mismatch"


class UnknownReferenceSystem(InputError):  # noqa: N818
    code = "unknown_crs"


class NotFoundError(GeomillError):
    code = "not_found"
    exit_code = 2


class UploadGone(NotFoundError):  # noqa: N818
    code = "upload_gone"


class ConflictError(GeomillError):
    code = "conflict"


class IllegalTransition(ConflictError):  # noqa: N818  the name says what happened
    code = "illegal_transition"

    def __init__(self, machine: str, source: str, target: str, allowed: Sequence[str]) -> None:
        self.machine, self.source, self.target = machine, source, target
        after = ", ".join(allowed) or "nothing, because it is final"
        super().__init__(f"a {machine} cannot go from {source} to {target}; after {source} comes {after}")


class AssetExists(ConflictError):  # noqa: N818
    code = "asset_exists"


class AssetState(ConflictError):  # noqa: N818
    code = "asset_state"


class RevisionChanged(ConflictError):  # noqa: N818
    code = "revision_changed"


class DownloadTooLarge(ConflictError):  # noqa: N818
    code = "download_too_large"


class PlatformInactive(ConflictError):  # noqa: N818
    code = "platform_inactive"


class DataFactoryRefused(ConflictError):  # noqa: N818
    code = "data_factory_refused"


class UploadOffset(ConflictError):  # noqa: N818
    code = "upload_offset"


class UploadLocked(ConflictError):  # noqa: N818
    code = "upload_locked"


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


class BusUnavailable(UnavailableError):  # noqa: N818
    code = "service_bus"

    def __init__(self, message: str, *, remedy: str = "", lasting: bool = False) -> None:
        super().__init__(message, remedy=remedy)
        self.lasting = lasting
        """Whether it lasts until somebody acts."""


class IdentityUnavailable(UnavailableError):  # noqa: N818
    code = "identity_unavailable"


class DataFactoryUnavailable(UnavailableError):  # noqa: N818
    code = "data_factory_unavailable"


class StorageUnavailable(UnavailableError):  # noqa: N818
    code = "storage_unavailable"


class StorageDenied(StorageUnavailable):
    code = "storage_denied"


class StorageFull(StorageUnavailable):
    code = "storage_full"


MOST_ESTIMATED, MOST_COMPARED = 200, 5
"""Names whose likeness is estimated, and that are compared letter by letter: a comparison may take milliseconds."""
LIKE = 0.6


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return a hint with the closest of the valid names, or a list of them if none is close."""
    names = sorted(valid)
    lowered = {candidate.lower(): candidate for candidate in names}
    close = _closest(name[:200].lower(), sorted(lowered))
    if close is not None:
        return f"did you mean '{lowered[close]}'?"
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"use one of: {shown}" if names else "there are none"


def _closest(name: str, names: list[str]) -> str | None:
    """Return the name that is most alike, or None. Of very many names, those are considered that begin alike."""
    matcher: SequenceMatcher[str] = SequenceMatcher(b=name)
    estimates: list[tuple[float, str]] = []
    first = max(0, min(bisect_left(names, name) - MOST_ESTIMATED // 2, len(names) - MOST_ESTIMATED))
    for candidate in names[first : first + MOST_ESTIMATED]:
        matcher.set_seq1(candidate)
        if matcher.real_quick_ratio() >= LIKE and (estimate := matcher.quick_ratio()) >= LIKE:
            estimates.append((estimate, candidate))
    ratios: list[tuple[float, str]] = []
    for _, candidate in sorted(estimates, reverse=True)[:MOST_COMPARED]:
        matcher.set_seq1(candidate)
        ratios.append((matcher.ratio(), candidate))
    best, candidate = max(ratios, default=(0.0, ""))
    return candidate if best >= LIKE else None
