# Written by script/client from client/asynchronous. Change that, not this.
"""The connection of a client: sends requests, follows streams."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx
from httpx_sse import ServerSentEvent, connect_sse
from pydantic import BaseModel, TypeAdapter

from geomill.client import answers
from geomill.errors import UnavailableError

Model = TypeVar("Model")

STREAM_SILENCE_SECONDS = 60.0
"""A gateway sends a comment every 15 seconds. A stream that is silent for longer is opened again."""
DOWNLOAD_SECONDS = 330.0
"""How long to wait for the next byte of a file. A gateway makes a file for 300 seconds at most."""
RECONNECT_SECONDS, LONGEST_RECONNECT_SECONDS = 0.5, 5.0


class GatewayConnection:
    def __init__(self, http: httpx.Client, *, tries: int = 3, patience: float = 60.0) -> None:
        """`tries` is how often a request that only reads is sent while the gateway is away. `patience` is how many
        seconds a stream that was lost is opened again."""
        self._http, self._tries, self._patience = http, tries, patience

    def get(self, kind: type[Model], path: str, **params: Any) -> Model:
        """Send a GET request and return its answer as a `kind`. Parameters that are None are left out."""
        return _typed(kind, self.send("GET", path, params=params))

    def post(self, kind: type[Model], path: str, body: Any = None, **params: Any) -> Model:
        return _typed(kind, self.send("POST", path, params=params, body=body))

    def patch(self, kind: type[Model], path: str, body: Any) -> Model:
        return _typed(kind, self.send("PATCH", path, body=body))

    def put(self, kind: type[Model], path: str, body: Any) -> Model:
        return _typed(kind, self.send("PUT", path, body=body))

    def delete(self, path: str, **params: Any) -> None:
        self.send("DELETE", path, params=params)

    def send(self, method: str, path: str, *, params: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        """Send a request and return the gateway's answer: parsed JSON, or text. Raises one of geomill's errors.

        A request that only reads is sent again while the gateway is away or busy.
        """
        query, content = answers.parameters(params or {}), _json(body)
        most = self._tries if method == "GET" else 1
        tries = 0
        while True:
            tries += 1
            try:
                answer = self._http.request(method, path, params=query, json=content)
            except httpx.TransportError as error:
                pause = answers.pause_before_retry(None, tries, most)
                if pause is None:
                    raise answers.unreachable(self._http.base_url, error) from None
            else:
                pause = answers.pause_before_retry(answer, tries, most)
                if pause is None:
                    return answers.result_of(answer)
            time.sleep(pause)

    def transmit(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes | Iterator[bytes] | None = None
    ) -> httpx.Headers:
        """Send a body that is not JSON, once, and return the headers of the answer."""
        try:
            answer = self._http.request(method, path, headers=dict(headers), content=content)
        except httpx.TransportError as error:
            raise answers.unreachable(self._http.base_url, error) from None
        if not answer.is_success:
            raise answers.error_of(answer)
        return answer.headers

    def follow(self, path: str, last_event_id: str = "", **params: Any) -> Iterator[ServerSentEvent]:
        """Yield the events of a stream until the event `end`. A stream that is lost is opened again where it stopped.

        Raises `UnavailableError` if it cannot be opened again within the patience of this client.
        """
        query = answers.parameters(params)
        silent = 0.0
        while True:
            try:
                headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
                timeout = httpx.Timeout(STREAM_SILENCE_SECONDS, connect=5.0)
                with connect_sse(self._http, "GET", path, params=query, headers=headers, timeout=timeout) as source:
                    self._require_stream(source.response)
                    for event in source.iter_sse():
                        silent, last_event_id = 0.0, event.id or last_event_id
                        yield event
                        if event.event == "end":
                            return
            except (httpx.TransportError, UnavailableError) as error:
                if silent >= self._patience:
                    if isinstance(error, UnavailableError):
                        raise
                    raise answers.unreachable(self._http.base_url, error) from None
            pause = min(RECONNECT_SECONDS + silent, LONGEST_RECONNECT_SECONDS)
            silent += pause
            time.sleep(pause)

    def save(self, path: str, target: Path, **params: Any) -> int:
        """Save an answer as a file and return its size. The file appears when it is whole."""
        part, size = target.with_name(f"{target.name}.part"), 0
        timeout = httpx.Timeout(DOWNLOAD_SECONDS, connect=5.0)
        try:
            with self._http.stream("GET", path, params=answers.parameters(params), timeout=timeout) as answer:
                self._require_stream(answer)
                with part.open("wb") as file:
                    for data in answer.iter_bytes():
                        size += file.write(data)
            part.replace(target)
        except httpx.TransportError as error:
            raise answers.unreachable(self._http.base_url, error) from None
        finally:
            part.unlink(missing_ok=True)
        return size

    def _require_stream(self, answer: httpx.Response) -> None:
        if not answer.is_success:
            answer.read()
            raise answers.error_of(answer)


def _typed(kind: type[Model], value: Any) -> Model:
    model: Model = _adapter(cast("Any", kind)).validate_python(value)
    return model


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _json(body: Any) -> Any:
    """Return a body as JSON. Fields of a model that its author did not set are left out, so a newer gateway's defaults
    apply."""
    return body.model_dump(mode="json", exclude_unset=True) if isinstance(body, BaseModel) else body
