"""A real namespace of Service Bus, or Microsoft's emulator, in place of the peer. It can be looked at, not steered."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusReceiveMode, ServiceBusSubQueue

from geomill.domain.engine.message import JOBS_QUEUE, TASK_QUEUES
from geomill.queues.servicebus import BusOptions

TEST_QUEUES = ("orders", "others")
QUEUES = (JOBS_QUEUE, *TASK_QUEUES, *TEST_QUEUES)
MOST = 250


@dataclass
class RealNamespace:
    """Answers the peer's commands that a real namespace can answer. A test that gives another one is skipped."""

    connection_string: str

    @property
    def options(self) -> BusOptions:
        return BusOptions(connection_string=self.connection_string)

    def tell(self, command: str, *words: object) -> dict[str, Any]:
        if command == "depth":
            return self._depth(str(words[0]))
        if command == "clear":
            return self._clear()
        pytest.skip(f"only the peer can be told to {command}")

    def _depth(self, queue_name: str) -> dict[str, Any]:
        """Locked messages count as waiting, and receivers are not counted: a namespace tells neither."""
        with ServiceBusClient.from_connection_string(self.connection_string) as client:
            with client.get_queue_receiver(queue_name) as receiver:
                messages = receiver.peek_messages(MOST)
            with client.get_queue_receiver(queue_name, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
                letters = receiver.peek_messages(MOST)
        due = [message.scheduled_enqueue_time_utc for message in messages]
        scheduled = sum(moment is not None and moment > datetime.now(UTC) for moment in due)
        dead = [[letter.dead_letter_reason, letter.dead_letter_error_description] for letter in letters]
        waiting = len(messages) - scheduled
        return {"waiting": waiting, "locked": 0, "scheduled": scheduled, "dead": dead, "receivers": 1}

    def _clear(self) -> dict[str, Any]:
        places = [
            (queue_name, sub_queue) for queue_name in QUEUES for sub_queue in (None, ServiceBusSubQueue.DEAD_LETTER)
        ]
        with ThreadPoolExecutor(len(places)) as threads:  # each takes seconds, and tests are many
            list(threads.map(lambda place: self._empty(*place), places))
        return {}

    def _empty(self, queue_name: str, sub_queue: ServiceBusSubQueue | None) -> None:
        mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
        with (
            ServiceBusClient.from_connection_string(self.connection_string) as client,
            client.get_queue_receiver(queue_name, sub_queue=sub_queue, receive_mode=mode) as receiver,
        ):
            while receiver.peek_messages(1) and receiver.receive_messages(MOST, max_wait_time=1):
                pass
