"""The boundary to obstore: translates its errors into geomill's, without confidential details."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    GenericError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from geomill.domain.access.confidential import without_places
from geomill.domain.location import Folder
from geomill.errors import ConflictError, NotFoundError, StorageDenied, StorageUnavailable
from geomill.remedies import CHECK_STORE
from geomill.storage.stores import ResolvedContainer

log = logging.getLogger(__name__)

_STATUS = re.compile(r"status code: (\d{3}[ \w]*)")
_QUERY = re.compile(r"\?\S*")
_PROVIDER_FAILED = "credential provider: "
"""The words of obstore before the error of a token that we could not get."""
CHECK_IDENTITY = "try again; if that does not help, check the managed identity and AZURE_CLIENT_ID"
LONGEST_REASON = 300
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
Result = TypeVar("Result")


@contextmanager
def translated(shelf: ResolvedContainer, path: str, *, writing: bool = False) -> Iterator[None]:
    """Translate errors of obstore. The causes are left out, because their text contains whole requests with signatures.
    Only the log names the location of the store, because partners read these messages."""
    what = f"'{shelf.zone}/{shelf.container}/{path}'" if path else f"'{shelf.zone}/{shelf.container}'"
    try:
        yield
    except FileNotFoundError:
        raise _missing(shelf, what, whole=writing or not path) from None
    except AlreadyExistsError:
        raise ConflictError(f"there is already an object {what}", remedy="choose another name or delete it") from None
    except PreconditionError:
        raise ConflictError(f"the object {what} was changed meanwhile", remedy="try again") from None
    except (PermissionDeniedError, UnauthenticatedError) as error:
        if _PROVIDER_FAILED in str(error):
            log.warning("no token for %s: %s", shelf.location, _reason(error))
            raise StorageUnavailable(f"the store gave no access to {what}: no token", remedy=CHECK_IDENTITY) from None
        log.warning("%s refuses access to %s: %s", shelf.location, what, _reason(error))
        raise StorageDenied(
            f"the store refuses access to {what}: {_reason(error)}", remedy=_permission(shelf)
        ) from None
    except BaseError as error:
        if not path and "status code: 404" in str(error):  # for a listing obstore has no own error class
            raise _missing(shelf, what, whole=True) from None
        log.warning("%s failed for %s: %s", shelf.location, what, _reason(error))
        raise StorageUnavailable(
            f"the store failed for {what}: {_reason(error)}",
            remedy=CHECK_STORE.shell,
        ) from None


def persistently(work: Callable[[], Result], shelf: ResolvedContainer, seconds: float) -> Result:
    """Run the work, and repeat it if it fails for a reason that may pass. obstore repeats requests, but not if the
    response breaks off. The work must be idempotent."""
    deadline, pause = time.monotonic() + seconds, FIRST_PAUSE
    while True:
        try:
            return work()
        except GenericError as error:
            if shelf.local or not _passes(error) or time.monotonic() + pause > deadline:
                raise
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311  not a secret
        pause = min(2 * pause, LONGEST_PAUSE)


def _passes(error: GenericError) -> bool:
    """Whether a repetition may succeed."""
    status = _STATUS.search(str(error))
    return not status or status[1].startswith("5") or status[1][:3] in ("408", "429")


def _missing(shelf: ResolvedContainer, what: str, *, whole: bool) -> NotFoundError:
    if whole:
        return NotFoundError(
            f"there is no container '{shelf.container}' in the zone '{shelf.zone}'",
            remedy="create it, or correct the name",
        )
    return NotFoundError(
        f"there is no object {what}",
        remedy="check the name, or list the objects of its container",
    )


def _permission(shelf: ResolvedContainer) -> str:
    if isinstance(shelf.location, Folder):
        return "give this user the right to read and write there"
    return "check the credentials and their permissions"


def _reason(error: BaseError) -> str:
    """Return a short reason. obstore gives only text, of which the status is the useful part."""
    text = str(error).partition("\n")[0]
    if status := _STATUS.search(text):
        return f"it answered {status[1].strip()}"
    return without_places(_QUERY.sub("", text.rpartition(" - ")[2]))[:LONGEST_REASON]
