"""A server that notes who calls it, and answers with nothing that anybody could use."""

from __future__ import annotations

import socket
import threading
from types import TracebackType


class CallRecorder:
    """A server on a port of its own. `url` leads to it; `calls` has the beginning of each request."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/x"

    def __enter__(self) -> CallRecorder:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(2)
                try:
                    self.calls.append(connection.recv(100))
                    connection.sendall(b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                except OSError:
                    self.calls.append(b"")
