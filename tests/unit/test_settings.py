"""Settings from the environment."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from geomill.api.app import _desk
from geomill.cli.context import bus_options
from geomill.domain.engine.message import JOBS_QUEUE, TASK_QUEUES
from geomill.errors import SettingsError
from geomill.platform.export import WorkflowExporter
from geomill.settings import Settings, variables
from geomill.storage import NO_STORAGE
from geomill.workflows.registry import WorkflowRegistry


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in variables():
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch):
    def read_settings(environ: dict[str, str], **options: Any) -> Settings:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        return Settings(os.environ, **options)

    return read_settings


def test_without_variables_there_are_defaults(read) -> None:
    settings = read({})
    assert settings.database.database_url is None
    assert settings.database.data.name == "geomill"
    assert (settings.workflow.workflows, settings.workflow.handlers) == ([], [])
    assert settings.queue.job_queue_name == JOBS_QUEUE
    assert settings.queue.task_queues == TASK_QUEUES


def test_variables_are_read(read) -> None:
    url = "postgresql://ada:secret@db/geo"
    settings = read({"GEOMILL_DATABASE_URL": url, "GEOMILL_DATA": "/srv/geomill"})
    assert settings.database.database_url == url
    assert settings.database.data == Path("/srv/geomill")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a", ["a"]), ("a,b", ["a", "b"]), (" a , b ,", ["a", "b"]), ("", []), (" , ", []), ('["a"]', ['["a"]'])],
)
def test_lists_are_separated_by_commas(read, text: str, expected: list[str]) -> None:
    settings = read({"GEOMILL_HANDLERS": text, "GEOMILL_WORKFLOWS": text, "GEOMILL_QUEUES": text})
    assert settings.workflow.handlers == settings.queue.queues == expected
    assert settings.workflow.workflows == [Path(part) for part in expected]


def test_task_queues_are_the_default_ones_and_more_each_once(read) -> None:
    settings = read({"GEOMILL_QUEUES": f"mine,{TASK_QUEUES[0]},mine"})
    assert settings.queue.task_queues == (*TASK_QUEUES, "mine")


@pytest.mark.parametrize("name", ["JOB_QUEUE_NAME", "GEOMILL_JOB_QUEUE_NAME"])
def test_the_specification_s_name_works_with_and_without_the_prefix(read, name: str) -> None:
    assert read({name: "orders"}).queue.job_queue_name == "orders"


@pytest.mark.parametrize(
    ("name", "suggestion"), [("GEOMILL_DATABSE_URL", "GEOMILL_DATABASE_URL"), ("GEOMILL_WORKFLOW", "GEOMILL_WORKFLOWS")]
)
def test_an_unknown_variable_is_refused_and_the_nearest_named(read, name: str, suggestion: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read({name: "x"})
    assert f"the environment variable {name} is not a setting" in str(caught.value)
    assert f"did you mean '{suggestion}'?" in str(caught.value)


def test_the_variables_of_others_are_left_alone(read) -> None:
    read({"GEOMILLER_X": "1", "DATABASE_URL": "mysql://x"})


@pytest.mark.parametrize("url", ["mysql://ada:secret@db/geo", "ada:secret@db", ""])
def test_a_wrong_database_url_is_refused_without_showing_the_password(read, url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read({"GEOMILL_DATABASE_URL": url})
    assert "GEOMILL_DATABASE_URL" in str(caught.value)
    assert "must start with postgresql://" in str(caught.value)
    assert "secret" not in f"{caught.value} {caught.value.problems}"
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.problems[0].where == "GEOMILL_DATABASE_URL"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_both_schemes_of_postgresql_are_taken(read, scheme: str) -> None:
    assert read({"GEOMILL_DATABASE_URL": f"{scheme}:///geo"}).database.database_url == f"{scheme}:///geo"


def test_the_command_line_wins_over_the_environment(read) -> None:
    environ = {"GEOMILL_DATA": "/from/environment", "GEOMILL_WORKFLOWS": "one,two"}
    settings = read(environ, data=Path("/given"), workflows=(Path("three"),))
    assert settings.database.data == Path("/given")
    assert settings.workflow.workflows == [Path("three")]


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"GEOMILL_OIDC_ISSUER": "http://login.example.org"}, "must start with https://"),
        ({"GEOMILL_OIDC_ISSUER": "file:///etc"}, "must start with https://"),
        ({"GEOMILL_OIDC_ISSUER": "https://login.example.org"}, "without GEOMILL_OIDC_AUDIENCE"),
        ({"GEOMILL_OIDC_ISSUER": "https://a", "GEOMILL_OIDC_AUDIENCE": ""}, "without GEOMILL_OIDC_AUDIENCE"),
        ({"GEOMILL_OIDC_ALGORITHMS": "RS256,HS256"}, "HS256 is not one of RS256"),
        ({"GEOMILL_OIDC_ALGORITHMS": "none"}, "none is not one of"),
        ({"GEOMILL_OIDC_ALGORITHMS": ""}, "at least 1 item"),
        ({"GEOMILL_CORS_ORIGINS": "*"}, "'*' is not an origin"),
        ({"GEOMILL_CORS_ORIGINS": "https://a.example/"}, "is not an origin"),
        ({"GEOMILL_SUBMIT_RATE": "0"}, "greater than 0"),
        ({"GEOMILL_TRUSTED_PROXIES": "*"}, "'*' is not an address"),
        ({"GEOMILL_TRUSTED_PROXIES": "10.0.0.5,proxy.example.org"}, "'proxy.example.org' is not an address"),
        ({"GEOMILL_TRUSTED_PROXIES": "10.0.0.5/8"}, "is not an address"),
        ({"GEOMILL_METRICS_KEY": "short"}, "at least 32"),
        ({"GEOMILL_METRICS_KEY": "with spaces in it, and long enough for all"}, "without a space"),
        ({"GEOMILL_URL": "localhost:8000"}, "must start with https://"),
    ],
)
def test_who_may_call_is_not_opened_by_a_slip(read, environ: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(environ)
    assert words in str(caught.value)


def test_service_bus_needs_a_namespace_or_a_connection_string(read) -> None:
    with pytest.raises(SettingsError, match="no namespace is named"):
        read({"GEOMILL_BROKER": "servicebus"})
    settings = read({"GEOMILL_BROKER": "servicebus", "SERVICE_BUS_NAMESPACE": "maps"})
    assert bus_options(settings.broker).host == "maps.servicebus.windows.net"
    assert settings.broker.service_bus_connection_string is None
    with pytest.raises(SettingsError, match="GEOMILL_BROKER"):
        read({"GEOMILL_BROKER": "rabbitmq"})


def test_the_connection_string_of_service_bus_is_shown_nowhere(read) -> None:
    text = "Endpoint=sb://maps;SharedAccessKeyName=k;SharedAccessKey=s3cret"
    settings = read({"GEOMILL_BROKER": "servicebus", "SERVICE_BUS_CONNECTION_STRING": text})
    assert "s3cret" not in repr(settings.broker)
    assert bus_options(settings.broker).connection_string == text


def test_an_issuer_and_a_gateway(read) -> None:
    settings = read(
        {
            "GEOMILL_OIDC_ISSUER": "https://login.example.org/realms/geo",
            "GEOMILL_OIDC_AUDIENCE": "geomill",
            "GEOMILL_OIDC_ALGORITHMS": "PS256, EdDSA",
            "GEOMILL_URL": "https://environment.example",
            "GEOMILL_KEY": "gm_secret",
        },
        url="https://given.example",
    )
    assert settings.access.oidc_algorithms == ["PS256", "EdDSA"]
    assert settings.client.url == "https://given.example"
    assert "gm_secret" not in repr(settings.client)


def test_settings_are_frozen(read) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        read({}).database.data = Path("/elsewhere")


def test_every_variable_has_a_description() -> None:
    descriptions = variables()
    assert {"GEOMILL_DATABASE_URL", "GEOMILL_DATA", "JOB_QUEUE_NAME", "GEOMILL_QUEUES"} <= set(descriptions)
    assert [name for name, description in descriptions.items() if not description] == []


def test_urls_without_a_password_use_tokens_and_others_keep_theirs(read) -> None:
    environ = {
        "GEOMILL_DATABASE_AUTH": "azure",
        "GEOMILL_DATABASE_URL": "postgresql://worker@db/geo?sslmode=verify-full",
        "GEOMILL_LOADER_DATABASE_URL": "postgresql://loader:secret@db/geo",
        "MANAGED_IDENTITY_CLIENT_ID": "an-identity",
    }
    database = read(environ).database
    assert database.database_url == environ["GEOMILL_DATABASE_URL"] + "&passfile=azure-identity%3Aan-identity"
    assert database.loader_database_url == environ["GEOMILL_LOADER_DATABASE_URL"]
    assert database.external_database_url is None


def test_a_token_is_not_sent_without_encryption(read) -> None:
    with pytest.raises(SettingsError, match=r"GEOMILL_EXTERNAL_DATABASE_URL .* add sslmode=verify-full"):
        read({"GEOMILL_DATABASE_AUTH": "azure", "GEOMILL_EXTERNAL_DATABASE_URL": "postgresql://worker@db/geo"})


def test_a_url_that_asks_for_a_token_by_itself_needs_encryption_too(read) -> None:
    url = "postgresql://loader@db/geo?passfile=azure-identity%3Aan-identity"
    with pytest.raises(SettingsError, match="GEOMILL_LOADER_DATABASE_URL may send a token without encryption"):
        read({"GEOMILL_LOADER_DATABASE_URL": url})


FACTORY = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg-geo"
    "/providers/Microsoft.DataFactory/factories/adf-geo"
)


def test_data_factory_is_named_by_its_resource_id(read) -> None:
    platform = read({"GEOMILL_EXPORTER": "data_factory", "GEOMILL_DATA_FACTORY": FACTORY}).platform
    assert platform.factory is not None
    assert (platform.factory.factory, platform.factory.pipeline) == (FACTORY, "geomill-export")
    assert platform.factory.url == "https://management.azure.com"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GEOMILL_DATA_FACTORY", "adf-geo"),
        ("GEOMILL_DATA_FACTORY", FACTORY + "/../../x"),
        ("GEOMILL_DATA_FACTORY", FACTORY + "?x=1"),
        ("GEOMILL_DATA_FACTORY_PIPELINE", "a/../b"),
        ("GEOMILL_DATA_FACTORY_URL", "https://management.azure.com.example.org"),
        ("GEOMILL_DATA_FACTORY_URL", "https://example.org"),
        ("GEOMILL_DATA_FACTORY_URL", "http://management.azure.com"),
        ("GEOMILL_EXPORTER", "azure"),
    ],
)
def test_a_token_of_the_management_goes_to_azure_only(read, name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        read({"GEOMILL_DATA_FACTORY": FACTORY, name: value})


def test_an_exporter_without_its_factory_is_refused(read) -> None:
    with pytest.raises(SettingsError, match="GEOMILL_DATA_FACTORY to the resource id"):
        read({"GEOMILL_EXPORTER": "data_factory"})


@pytest.mark.parametrize(("exporter", "copies"), [("geomill", False), ("data_factory", True)])
def test_the_gateway_exports_as_it_is_set(read, exporter: str, copies: bool) -> None:
    platform = read({"GEOMILL_EXPORTER": exporter, "GEOMILL_DATA_FACTORY": FACTORY}).platform
    desk = _desk(WorkflowRegistry([]), "dag-jobs", NO_STORAGE, platform, None)
    assert isinstance(desk.exporter, WorkflowExporter)
    assert (desk.exporter.copies_by_factory, desk.exporter.factory) == (copies, platform.factory)
