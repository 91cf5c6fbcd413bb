"""From the environment to what the duty needs."""

from __future__ import annotations

import os
from ipaddress import ip_address

import pytest

from geomill.engine.maintenance.callbacks import CallbackOptions
from geomill.errors import SettingsError
from geomill.settings import Settings


def read(monkeypatch: pytest.MonkeyPatch, **environ: str) -> CallbackOptions:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    return CallbackOptions.of(Settings(os.environ).callback)


def test_without_settings_nothing_is_signed_and_nothing_inside_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    options = read(monkeypatch)
    assert (options.secret, options.public_url) == (None, "")
    assert not options.allowed.permits("localhost", ip_address("127.0.0.1"))


def test_settings_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    options = read(
        monkeypatch,
        GEOMILL_CALLBACK_SECRET="0123456789abcdef",
        GEOMILL_CALLBACK_ALLOW="hooks.internal, 10.0.0.0/8",
        GEOMILL_PUBLIC_URL="https://geo.example",
    )
    assert options.secret == "0123456789abcdef"
    assert "0123456789abcdef" not in repr(options)
    assert options.allowed.permits("x", ip_address("10.1.1.1"))
    assert options.allowed.permits("hooks.internal", ip_address("192.168.0.1"))


def test_a_short_secret_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError) as caught:
        read(monkeypatch, GEOMILL_CALLBACK_SECRET="hunter2")
    assert "GEOMILL_CALLBACK_SECRET" in str(caught.value)
    assert "hunter2" not in f"{caught.value} {caught.value.problems}"


def test_what_is_no_network_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"10\.0\.0\.0/99"):
        read(monkeypatch, GEOMILL_CALLBACK_ALLOW="10.0.0.0/99")
