"""The checks of `geomill doctor` on Service Bus: whether each queue can be reached, to send and to receive."""

from __future__ import annotations

from geomill.cli import context
from geomill.cli.examination import Diagnosis, Level
from geomill.errors import BusUnavailable
from geomill.queues.servicebus import Bus, open_bus
from geomill.settings import Settings

SUBJECT = "service bus"


async def examine_bus(settings: Settings) -> list[Diagnosis]:
    """Return nothing if the database alone is the broker."""
    if settings.broker.broker == "postgres":
        return []
    queue_names = (settings.queue.job_queue_name, *settings.queue.task_queues)
    async with open_bus(context.bus_options(settings.broker)) as bus:
        troubles = [trouble for name in queue_names if (trouble := await _examine_queue(bus, name))]
    return troubles or [Diagnosis(Level.OK, SUBJECT, f"{len(queue_names)} queues can be reached")]


async def _examine_queue(bus: Bus, queue_name: str) -> Diagnosis | None:
    try:
        await bus.send(queue_name, [])
        async with bus.receiver(queue_name):
            return None
    except BusUnavailable as error:
        return Diagnosis(Level.FAIL, SUBJECT, error.message, error.remedy)
