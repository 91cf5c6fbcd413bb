from __future__ import annotations

import logging
import threading

import pytest

from geomill.domain.engine.log import LONGEST_LINE, MOST_LINES
from geomill.sdk.result import HandlerError
from geomill.worker.notes import Notebook
from tests.unit.worker.samples import notes


def test_the_latest_progress_and_checkpoint_count() -> None:
    notebook = Notebook(lambda: None)
    task = notes(notebook)
    for number in range(3):
        task.progress(number / 10, f"step {number}")
        task.checkpoint(f"phase {number}", {"number": number})
    (note,) = notebook.take()
    assert (note.progress, note.checkpoint) == ((0.2, "step 2"), ("phase 2", '{"number":2}'))
    assert not notebook.pending


def test_only_a_checkpoint_wakes_the_worker_at_once() -> None:
    woken: list[bool] = []
    task = notes(Notebook(lambda: woken.append(True)))
    task.progress(0.5, "")
    task.line(logging.INFO, "a")
    assert woken == []
    task.checkpoint("one", {})
    assert woken == [True]


def test_what_could_not_be_written_comes_back_before_what_is_newer() -> None:
    notebook = Notebook(lambda: None)
    task = notes(notebook)
    task.progress(0.1, "old")
    task.checkpoint("old", {})
    task.line(logging.INFO, "first")
    notes_taken = notebook.take()
    task.progress(0.2, "new")
    task.line(logging.INFO, "second")
    notebook.put_back(notes_taken)
    (note,) = notebook.take()
    assert note.progress == (0.2, "new")
    assert note.checkpoint == ("old", "{}")
    assert [text for _, text in note.lines] == ["first", "second"]


def test_lines_are_bounded_in_length_and_number() -> None:
    notebook = Notebook(lambda: None)
    task = notes(notebook)
    task.line(logging.WARNING, "x" * 2000)
    for number in range(500):
        task.line(logging.INFO, f"{number}\nand more")
    (note,) = notebook.take()
    assert note.lines[0] == ("WARNING", "x" * LONGEST_LINE)
    assert len(note.lines) == MOST_LINES
    assert note.lines[-1] == ("INFO", "further lines are not kept")


def test_text_that_postgresql_does_not_take_is_cleaned() -> None:
    notebook = Notebook(lambda: None)
    task = notes(notebook)
    task.progress(0, "a\x00b\ud800")
    task.line(logging.INFO, "a\x00b\ud800")
    task.keep("a\x00b", "{}")
    (note,) = notebook.take()
    assert note.progress == (0, "ab?")
    assert note.lines == [("INFO", "ab?")]
    assert note.checkpoint == ("ab", "{}")


@pytest.mark.parametrize("data", [{"a": float("nan")}, {"a": "x" * 10_000_001}])
def test_a_checkpoint_that_cannot_be_stored_fails_the_handler(data: dict[str, object]) -> None:
    with pytest.raises(HandlerError, match="the checkpoint 'p'"):
        notes().checkpoint("p", data)


def test_threads_lose_nothing() -> None:
    notebook = Notebook(lambda: None)
    texts: list[str] = []

    def talk(sequence: int) -> None:
        task = notes(notebook, sequence)
        for number in range(MOST_LINES - 1):
            task.line(logging.INFO, str(number))

    threads = [threading.Thread(target=talk, args=(sequence,)) for sequence in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        texts += [text for note in notebook.take() for _, text in note.lines]
    texts += [text for note in notebook.take() for _, text in note.lines]
    assert len(texts) == 8 * (MOST_LINES - 1)
