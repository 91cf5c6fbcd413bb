"""Turns errors of Azure's library into one of geomill's, which says whether a repetition may help.

An error that passes, such as a lost connection or a busy server, is repeated within seconds. One that needs somebody,
such as a missing queue or right, is repeated too, because it may be mended at any time, but seldom.
"""

from __future__ import annotations

from geomill.errors import BusUnavailable

TOO_LARGE = "the message is larger than the queue allows"

_LASTING = {
    "MessagingEntityNotFoundError": "create the queue in the namespace, with the name in the message",
    "MessagingEntityDisabledError": "enable the queue in the namespace",
    "ServiceBusAuthenticationError": "check SERVICE_BUS_CONNECTION_STRING, or the managed identity",
    "ServiceBusAuthorizationError": "give this process the roles Azure Service Bus Data Sender and Data Receiver",
    "ServiceBusQuotaExceededError": "receive or remove messages, or give the queue more space",
    "ClientAuthenticationError": "check MANAGED_IDENTITY_CLIENT_ID, and that the machine has this identity",
}
"""Errors by the names of their classes, with what somebody can do about them."""
_WAIT = "check SERVICE_BUS_NAMESPACE and the network; it is tried again by itself"


def bus_error(queue_name: str, error: Exception) -> BusUnavailable:
    """Return the error of a queue. Messages of the library name no secret, but are long; the first line suffices."""
    name = type(error).__name__
    text = str(error).strip().split("\n", 1)[0][:200]
    remedy = _LASTING.get(name)
    described = f"{name}: {text}" if text else name
    return BusUnavailable(
        f"the queue '{queue_name}' of Service Bus cannot be used: {described}",
        remedy=remedy or _WAIT,
        lasting=remedy is not None,
    )
