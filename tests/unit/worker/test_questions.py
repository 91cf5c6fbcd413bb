"""A handler in a child asks its worker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from geomill.errors import UnavailableError
from geomill.worker.children import frames
from geomill.worker.children.main import Listener, Questions, WorkerLine


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Questions]]:
    """The worker's end of the line, and the child's questions."""
    worker_end, child_end = socket.socketpair()
    with worker_end, child_end:
        questions = Questions(WorkerLine(child_end))
        listener = threading.Thread(target=Listener(child_end, questions).run)
        listener.start()
        yield worker_end, questions
        worker_end.shutdown(socket.SHUT_RDWR)
        listener.join()


def answer(sock: socket.socket, **fields: Any) -> threading.Thread:
    def run() -> None:
        question = frames.receive(sock)
        assert question is not None
        assert (question["kind"], question["node_id"], question["after"], question["having"]) == (
            "ask",
            "tiles",
            4,
            "key",
        )
        sock.sendall(frames.encode("answer", number=question["number"], **fields))

    started = threading.Thread(target=run)
    started.start()
    return started


def test_the_answer(ends: tuple[socket.socket, Questions]) -> None:
    sock, questions = ends
    worker = answer(sock, page="[[5,{},null]]")
    assert questions.page("tiles", 4, "key") == "[[5,{},null]]"
    worker.join()


def test_an_answer_to_somebody_who_is_gone_is_dropped(ends: tuple[socket.socket, Questions]) -> None:
    sock, questions = ends
    sock.sendall(frames.encode("answer", number=0, page="old"))
    worker = answer(sock, page="new")
    assert questions.page("tiles", 4, "key") == "new"
    worker.join()


def test_the_worker_cannot_read_it(ends: tuple[socket.socket, Questions]) -> None:
    sock, questions = ends
    worker = answer(sock, error="the database is away")
    with pytest.raises(UnavailableError, match="the database is away"):
        questions.page("tiles", 4, "key")
    worker.join()
