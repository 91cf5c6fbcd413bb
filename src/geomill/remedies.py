"""Instructions that differ between HTTP and the command line.

An error carries one of them in either form. The border to its reader calls `worded`, which puts every remedy in a text
into the words of that reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Channel(StrEnum):
    """The way on which a text reaches its reader."""

    HTTP = "http"
    SHELL = "shell"


@dataclass(frozen=True, slots=True)
class Remedy:
    """An instruction in the words of each channel."""

    http: str
    shell: str


LIST_JOBS = Remedy("GET /api/v1/jobs lists the jobs", "run 'geomill jobs list' to see those there are")
LIST_ASSETS = Remedy("GET /api/assets lists the assets", "run 'geomill assets list' to see those there are")
LIST_STAGE_JOBS = Remedy("GET /api/jobs lists the stage jobs", "run 'geomill stages list' to see those there are")
RETRY_REQUEST = Remedy("POST /api/platform/retry to try again", "run 'geomill assets retry' to try again")
RETRY_WITH_OPTIONS = Remedy(
    "POST /api/platform/retry with other processing_options", "run 'geomill assets retry' with another --option"
)
RETRY_EXPORT = Remedy("POST /api/platform/export/retry to try again", "run 'geomill assets retry-export' to try again")
OVERWRITE = Remedy("submit it again with overwrite=true", "submit it again with --overwrite")
NEW_REVISION = Remedy(
    "submit with overwrite=true to make a new revision", "submit with --overwrite to make a new revision"
)
BIND_PLATFORM = Remedy("give platform_id, for example ddh", "add --platform, for example --platform ddh")
CHECK_STORE = Remedy("try again later, or ask an operator", "run 'geomill doctor' to check the store")
MIGRATE = Remedy("ask an operator to migrate the database", "run 'geomill db migrate'")
CHECK_DATABASE = Remedy(
    "try again in a minute, or have the database checked", "run 'geomill db status' to check the database"
)
NEW_SIGN_IN_LINK = Remedy("get another with POST /api/v1/session/links", "get another with 'geomill console link'")
LIST_KEYS = Remedy("GET /api/v1/keys lists the keys", "run 'geomill keys list' to see the keys")
LIST_CIRCUITS = Remedy("GET /api/v1/circuits lists the circuits", "run 'geomill circuits list' to see the circuits")
LIST_DEAD_LETTERS = Remedy(
    "GET /api/v1/dead-letters lists the dead letters", "run 'geomill queues dead-letters' to see them"
)
LIST_VERSIONS = Remedy(
    "GET /api/v1/workflows/{workflow_id}/versions lists the definitions",
    "run 'geomill workflows versions' to see the definitions",
)
SHOW_WORKFLOW = Remedy(
    "GET /api/v1/workflows/{workflow_id} returns its definition", "run 'geomill workflows show' to see its definition"
)
NEW_LINK = Remedy(
    "get a new link from GET /api/assets/{asset_id}/links", "run 'geomill assets links' to get a new link"
)
KEEP_DETAILS = Remedy(
    "submit it again; an operator may keep details longer",
    "submit it again; GEOMILL_KEEP_DETAILS_DAYS sets how long details are kept",
)

REMEDIES = (
    LIST_JOBS,
    LIST_ASSETS,
    LIST_STAGE_JOBS,
    RETRY_REQUEST,
    RETRY_WITH_OPTIONS,
    RETRY_EXPORT,
    OVERWRITE,
    NEW_REVISION,
    BIND_PLATFORM,
    CHECK_STORE,
    MIGRATE,
    CHECK_DATABASE,
    NEW_SIGN_IN_LINK,
    LIST_KEYS,
    LIST_CIRCUITS,
    LIST_DEAD_LETTERS,
    LIST_VERSIONS,
    SHOW_WORKFLOW,
    NEW_LINK,
    KEEP_DETAILS,
)


def worded(text: str, channel: Channel) -> str:
    """Return the text with its remedies in the words of the channel."""
    for remedy in REMEDIES:
        form, other = (remedy.http, remedy.shell) if channel is Channel.HTTP else (remedy.shell, remedy.http)
        text = text.replace(other, form)
    return text
