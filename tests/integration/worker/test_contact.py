"""Until when a worker may work, and whether a server that gives no session says why."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import quote

import pytest

from geomill.worker import contact
from geomill.worker.contact import Contact, refuses


def test_a_server_that_is_up_refuses_nobody(database: str) -> None:
    assert not refuses(database)


def test_a_port_on_which_nobody_listens_is_a_refusal() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        assert refuses(f"postgresql://127.0.0.1:{closed.getsockname()[1]}/geomill")


def test_so_is_a_folder_without_a_socket(tmp_path: Path) -> None:
    assert refuses(f"postgresql:///geomill?host={quote(str(tmp_path), safe='')}")


def test_silence_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert not refuses(f"postgresql://127.0.0.1:{silent.getsockname()[1]}/geomill")


def test_one_server_of_several_does_not_speak_for_the_others() -> None:
    assert not refuses("postgresql://127.0.0.1:1,127.0.0.2:1/geomill")


def test_work_may_go_on_for_less_time_than_the_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    now, lost = [1000.0], []
    monkeypatch.setattr(contact, "clock", lambda: now[0])
    worker_contact = Contact(25.0, lambda: lost.append(now[0]))
    worker_contact.heard(1000.0)
    now[0] = 1019.9
    worker_contact.check()
    assert not lost
    now[0] = 1020.0
    worker_contact.heard(1020.0)  # what was lost before stays lost
    assert lost == [1020.0]
    assert not worker_contact.is_lost
    now[0] = 1039.0
    worker_contact.refused(1039.0)
    now[0] = 1046.9
    assert not worker_contact.is_lost
    now[0] = 1047.0
    assert worker_contact.is_lost
