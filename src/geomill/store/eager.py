"""A connection that looks for its answer before it goes to sleep.

PostgreSQL answers our hot statements within a fraction of a millisecond. Handing the socket to the event loop and
getting it back costs more than that, at every statement. So the socket is polled for a moment first; only when nothing
has come by then, as behind a lock or a lost network, does the event loop wait for it, and everything else goes on.

A loop that uses such a connection must let other tasks run (`await asyncio.sleep(0)`): an answer that is already there
does not suspend the task.
"""

from __future__ import annotations

import select
from collections.abc import Generator
from typing import Any, TypeVar

from psycopg.waiting import Ready, Wait

from geomill.store.session import Session

PATIENCE_MILLISECONDS = 3
"""The longest that the event loop stands still for one answer."""
LONGEST_SECONDS = 60.0
"""The longest that an answer is waited for. Statements of the engine take milliseconds, and wait for no lock for long.
A server that vanished behind a proxy which goes on receiving is noticed by this alone."""

Answer = TypeVar("Answer")


class EagerConnection(Session):
    async def wait(self, gen: Generator[Any, Any, Answer], *arguments: Any, **options: Any) -> Answer:
        options.setdefault("timeout", LONGEST_SECONDS)
        return await super().wait(_eager(gen, self.pgconn.socket), *arguments, **options)


def _eager(gen: Generator[Any, Any, Answer], descriptor: int) -> Generator[Any, Any, Answer]:
    """Like `gen`, but polls the socket before it asks the event loop to wait."""
    poller = select.poll()
    try:
        state = next(gen)
        while True:
            ready = _look(poller, descriptor, state)
            state = gen.send(ready or (yield state))
    except StopIteration as end:
        answer: Answer = end.value
        return answer


def _look(poller: select.poll, descriptor: int, state: int) -> int:
    events = (select.POLLIN if state & Wait.R else 0) | (select.POLLOUT if state & Wait.W else 0)
    poller.register(descriptor, events)
    ready = 0
    for _, happened in poller.poll(PATIENCE_MILLISECONDS):
        if happened & ~select.POLLOUT:
            ready |= Ready.R
        if happened & select.POLLOUT:
            ready |= Ready.W
    return ready
