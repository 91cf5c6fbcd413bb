"""Which errors of Service Bus last until somebody acts, and what their texts show."""

from __future__ import annotations

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.servicebus import exceptions

from geomill.queues.servicebus.problems import bus_error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (exceptions.MessagingEntityNotFoundError(), "create the queue"),
        (exceptions.MessagingEntityDisabledError(), "enable the queue"),
        (exceptions.ServiceBusAuthenticationError(), "check SERVICE_BUS_CONNECTION_STRING"),
        (exceptions.ServiceBusAuthorizationError(), "Azure Service Bus Data Sender"),
        (exceptions.ServiceBusQuotaExceededError(), "more space"),
        (ClientAuthenticationError("no identity"), "MANAGED_IDENTITY_CLIENT_ID"),
    ],
)
def test_these_last_and_say_what_to_do(error: Exception, words: str) -> None:
    described = bus_error("container-tasks", error)
    assert described.lasting
    assert words in described.remedy
    assert "container-tasks" in described.message


@pytest.mark.parametrize(
    "error",
    [
        exceptions.ServiceBusServerBusyError(),
        exceptions.ServiceBusConnectionError(),
        exceptions.ServiceBusCommunicationError(),
        exceptions.OperationTimeoutError(),
        TimeoutError(),
        ConnectionResetError("reset"),
        ValueError("the handler has already been shutdown"),
    ],
)
def test_these_pass(error: Exception) -> None:
    assert not bus_error("container-tasks", error).lasting


def test_the_text_is_one_short_line() -> None:
    message = bus_error("q", RuntimeError("first\nsecond " + "x" * 5000)).message
    assert "second" not in message
    assert len(bus_error("q", RuntimeError("x" * 5000)).message) < 400
