"""The gateway client of the command line. It turns problem documents into geomill's errors.

The address and the key come from `--url`, `GEOMILL_URL` and `GEOMILL_KEY`, or else from the data folder, where
`geomill up` writes them. There is no option for the key, because all users of a machine see the options of a process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geomill.cli import context, folder
from geomill.domain.addresses import is_loopback
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
from geomill.settings import Settings

if TYPE_CHECKING:
    import httpx  # imported at run time where it is used, so other commands start faster

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
        """Send a GET request. Parameters that are None are left out."""
        return self.call("GET", path, params=params)

    def post(self, path: str, body: Mapping[str, Any] | None = None, **params: Any) -> Any:
        return self.call("POST", path, params=params, body=body)

    def call(
        self, method: str, path: str, *, params: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the gateway's answer: parsed JSON, or text. Raises one of geomill's errors for a failure."""
        import httpx

        parameters = {name: value for name, value in (params or {}).items() if value is not None}
        try:
            answer = self._http.request(method, path, params=parameters, json=body)
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
    """Open a client: `with gateway() as client: client.get("/api/v1/jobs", limit=5)`."""
    import httpx

    url, key = find(context.settings())
    headers = {"Authorization": f"Bearer {key}"}
    proxied = not is_loopback(httpx.URL(url).host)  # a gateway on this machine is called directly
    timeout = httpx.Timeout(TIMEOUT_SECONDS, connect=CONNECT_SECONDS)
    with httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=proxied) as http:
        yield Client(http)


def find(settings: Settings) -> tuple[str, str]:
    """Return the gateway's address and the key. The key of the data folder is sent only to the gateway of that
    folder."""
    options, data = settings.client, settings.database.data
    if options.url and not options.key:
        raise SettingsError(f"no key is set for the gateway {options.url}", remedy="set GEOMILL_KEY")
    url = options.url or folder.read_address(data)
    key = options.key.get_secret_value() if options.key else _folder_key(data)
    if not url or not key:
        raise UnavailableError(f"no gateway is running on the data folder {data}", remedy=START)
    return url, key


def _folder_key(data: Path) -> str | None:
    secret = folder.read_key(data)
    return secret.reveal() if secret else None


def error_of(answer: httpx.Response) -> GeomillError:
    """Return the error that a failed answer describes. A body that is no problem document becomes a general error."""
    document = _document(answer)
    detail = document.get("detail") or f"the gateway answered {answer.status_code} {answer.reason_phrase}"
    if statements := document.get("statements"):
        return DestructiveMigration(detail, statements=statements)
    if answer.status_code in ERRORS:
        return ERRORS[answer.status_code](detail)
    if answer.is_client_error:
        return InputError(detail, problems=[_problem(entry) for entry in document.get("errors", ())])
    return GeomillError(detail)


def _document(answer: httpx.Response) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError:  # a proxy's page
        return {}
    return body if isinstance(body, dict) else {}


def _problem(entry: Mapping[str, Any]) -> Problem:
    return Problem(str(entry.get("field", "")), str(entry.get("message", "")), str(entry.get("hint", "")))
