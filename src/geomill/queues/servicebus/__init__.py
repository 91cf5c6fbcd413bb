"""Azure Service Bus beside the queue in the database: it says when tasks wait, and takes submissions of others.

`dag_queue` stays the truth. A message of Service Bus is a permit to lease one task (`permits.py`), or a submission that
another application sent (`engine/maintenance/entrance.py`). If Service Bus is away, workers look into the database
themselves, so nothing is lost and little is late. docs/decisions/099 has the reasons.
"""

from geomill.queues.servicebus.bus import Bus, BusOptions, open_bus
from geomill.queues.servicebus.permits import Offer, Permits

__all__ = ["Bus", "BusOptions", "Offer", "Permits", "open_bus"]
