"""Commands that talk to a gateway: which one, as whom, and its problem documents as our errors.

The address and the key come from `--url`, `GEOMILL_URL` and `GEOMILL_KEY`, else from the data folder, where
`geomill up` puts them. A key is no option, since everybody sees the options of a process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geomill.cli import context, folder
from geomill.errors import (
    ConflictError,
    DestructiveMigration,
    Forbidden,
    GeomillError,
    InputError,
    NotFoundError,
    Problem,
    SettingsError,
    TooManyRequests,
    Unauthenticated,
    UnavailableError,
)
from geomill.settings import Settings, is_loopback

if TYPE_CHECKING:
    import httpx  # at run time where it is used: other commands need not wait for it

START = "start 'geomill up', or set GEOMILL_URL and GEOMILL_KEY"
TIMEOUT_SECONDS, CONNECT_SECONDS = 30.0, 5.0
ERRORS: Mapping[int, type[GeomillError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFoundError,
    409: ConflictError,
    429: TooManyRequests,
    503: UnavailableError,
}


class Client:
    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def get(self, path: str, **params: Any) -> Any:
        """Parameters that are None are left out."""
        return self.call("GET", path, params=params)

    def post(self, path: str, body: Mapping[str, Any] | None = None, **params: Any) -> Any:
        return self.call("POST", path, params=params, body=body)

    def call(
        self, method: str, path: str, *, params: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None
    ) -> Any:
        """What the gateway answers, or one of our errors."""
        import httpx

        given = {name: value for name, value in (params or {}).items() if value is not None}
        try:
            answer = self._http.request(method, path, params=given, json=body)
        except httpx.TransportError as error:
            raise self._unreachable(error) from None
        if answer.is_success:
            return answer.json() if "json" in answer.headers.get("content-type", "") else answer.text
        raise error_of(answer)

    def _unreachable(self, error: httpx.TransportError) -> UnavailableError:
        import httpx

        where = f"{self._http.base_url}".rstrip("/")
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return UnavailableError(f"no gateway answers at {where}", remedy=START)
        return UnavailableError(f"the gateway at {where} did not answer: {error}", remedy="try again in a moment")


@contextmanager
def gateway() -> Iterator[Client]:
    """`with gateway() as client: client.get("/api/v1/jobs", limit=5)`."""
    import httpx

    url, key = find(context.settings())
    headers = {"Authorization": f"Bearer {key}"}
    proxied = not is_loopback(httpx.URL(url).host)  # what is on this machine is called directly
    timeout = httpx.Timeout(TIMEOUT_SECONDS, connect=CONNECT_SECONDS)
    with httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=proxied) as http:
        yield Client(http)


def find(settings: Settings) -> tuple[str, str]:
    """The address and the key. The folder's key is shown to the folder's gateway only, never to one named by hand."""
    given, data = settings.client, settings.database.data
    if given.url and not given.key:
        raise SettingsError(f"there is no key for {given.url}", remedy="set GEOMILL_KEY")
    url = given.url or folder.read_address(data)
    key = given.key.get_secret_value() if given.key else _folder_key(data)
    if not url or not key:
        raise UnavailableError(f"no gateway runs for {data}", remedy=START)
    return url, key


def _folder_key(data: Path) -> str | None:
    secret = folder.read_key(data)
    return secret.reveal() if secret else None


def error_of(answer: httpx.Response) -> GeomillError:
    """A problem document as the error that it was; any other answer as far as it can be told."""
    found = _document(answer)
    detail = found.get("detail") or f"the gateway answered {answer.status_code} {answer.reason_phrase}"
    if statements := found.get("statements"):
        return DestructiveMigration(detail, statements=statements)
    if answer.status_code in ERRORS:
        return ERRORS[answer.status_code](detail)
    if answer.is_client_error:
        return InputError(detail, problems=[_problem(one) for one in found.get("errors", ())])
    return GeomillError(detail)


def _document(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:  # a proxy's page
        return {}
    return found if isinstance(found, dict) else {}


def _problem(one: Mapping[str, Any]) -> Problem:
    return Problem(str(one.get("field", "")), str(one.get("message", "")), str(one.get("hint", "")))
