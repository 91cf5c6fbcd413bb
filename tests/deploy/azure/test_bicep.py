"""The Bicep files parse, agree with each other, and name what exists: settings, commands, queues, containers, roles.

There is no Bicep compiler here. Nothing checks the properties of a resource, nor what Azure does with them.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest

from geomill.datasets.outputs import INTERMEDIATE_CONTAINER, RASTER_CONTAINER, VECTOR_CONTAINER
from geomill.domain.assets.inventory import PUBLIC_CONTAINER
from geomill.domain.engine.large import CONTAINER as LARGE_CONTAINER
from geomill.domain.engine.message import JOBS_QUEUE, TASK_QUEUES
from geomill.domain.location import parse_location
from geomill.handlers.blob.places import PUBLISHED
from geomill.settings import Settings, variables
from tests.deploy.azure.bicep import FILES, FOLDER, BicepFile
from tests.deploy.commands import refusal
from tests.deploy.kubernetes.manifests import KustomizeOverlay
from tests.deploy.kubernetes.test_consistency import SERVICE_BUS
from tests.factory_server import PIPELINE

VERSIONS = {
    "Microsoft.App/containerApps": "2025-01-01",
    "Microsoft.App/jobs": "2025-01-01",
    "Microsoft.App/managedEnvironments": "2025-01-01",
    "Microsoft.Authorization/roleAssignments": "2022-04-01",
    "Microsoft.ContainerRegistry/registries": "2023-07-01",
    "Microsoft.DBforPostgreSQL/flexibleServers": "2024-08-01",
    "Microsoft.DataFactory/factories": "2018-06-01",
    "Microsoft.KeyVault/vaults": "2023-07-01",
    "Microsoft.ManagedIdentity/userAssignedIdentities": "2023-01-31",
    "Microsoft.Network/privateDnsZones": "2020-06-01",
    "Microsoft.Network/virtualNetworks": "2023-11-01",
    "Microsoft.OperationalInsights/workspaces": "2023-09-01",
    "Microsoft.ServiceBus/namespaces": "2021-11-01",
    "Microsoft.Storage/storageAccounts": "2023-05-01",
}
"""Types of resources, with a version that is generally available."""
ROLES = {
    "7f951dda-4ed3-4680-a7ca-43fe172d538d": "AcrPull",
    "ba92f5b4-2d11-453d-a403-e96b0029c9fe": "Storage Blob Data Contributor",
    "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1": "Storage Blob Data Reader",
    "69a216fc-b8fb-44d8-bc22-1f3c2cd27a39": "Azure Service Bus Data Sender",
    "4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0": "Azure Service Bus Data Receiver",
    "090c5cfd-751d-490a-894a-3ce6f1109419": "Azure Service Bus Data Owner",
    "4633458b-17de-408a-b874-0445c86b69e6": "Key Vault Secrets User",
    "673868aa-7521-48a0-acc6-0f60742d39f5": "Data Factory Contributor",
}
"""Azure's built-in roles that may be given. Owner and Contributor are not among them."""
GUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")

files = pytest.mark.parametrize("file", FILES, ids=lambda file: file.path.stem)


def named(stem: str) -> BicepFile:
    return next(file for file in FILES if file.path.stem == stem)


APPS = named("apps")


@files
def test_a_file_parses_and_uses_what_it_declares(file: BicepFile) -> None:
    assert file.errors == []
    assert file.unknown_names() == set()
    assert file.unused_names() == set()


def test_what_is_wrong_is_noticed(tmp_path: Any) -> None:
    (tmp_path / "a.bicep").write_text("param a string\nvar c = '${b}'\nresource x 'T@1' = {\n  name: c\n")
    broken = BicepFile(tmp_path / "a.bicep")
    assert broken.errors
    assert broken.unknown_names() == {"b"}
    assert "a" in broken.unused_names()


def test_a_module_gets_the_parameters_that_it_has() -> None:
    main = named("main")
    for name, path, body in main.modules():
        module = BicepFile(path)
        assert path.exists(), name
        passed = set(body.get("params", {}))
        assert module.required <= passed <= set(module.declared("parameter_declaration")), name
        used = set(re.findall(rf"\b{name}\.outputs\.(\w+)", main.path.read_text()))
        assert used <= module.outputs, name


@files
def test_types_of_resources_and_their_versions_are_known(file: BicepFile) -> None:
    for resource in file.resources:
        kind, _, version = resource.partition("@")
        assert VERSIONS["/".join(kind.split("/")[:2])] == version, resource


@files
def test_only_named_roles_are_given(file: BicepFile) -> None:
    source = file.path.read_text()
    assert set(GUID.findall(source)) <= set(ROLES)
    for role in file.declared("variable_declaration"):
        if role.endswith("Role"):
            name = ROLES[file.variable(role)]
            comment = source[: source.index(f"var {role}")].rpartition("//")[2]
            assert name.removeprefix("Azure Service Bus ") in comment, f"{file.path.name} does not say {name}"


def environment() -> dict[str, set[str]]:
    """The settings that containers get, with the values."""
    entries: dict[str, set[str]] = {}
    for entry in APPS.objects():
        if set(entry) in ({"name", "value"}, {"name", "secretRef"}) and str(entry["name"]).isupper():
            entries.setdefault(entry["name"], set()).add(str(entry.get("value", "")))
    return entries


def test_every_setting_exists() -> None:
    assert len(environment()) > 15
    assert set(environment()) <= set(variables()) | SERVICE_BUS


def test_the_settings_are_valid_with_names_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def filled(value: str) -> str:
        value = value.replace("${tls}", APPS.variable("tls"))
        return re.sub(r"\$\{\w*Account\}", "contosogeo", re.sub(r"\$\{databaseHost\}", "db.example", value))

    texts = {name: filled(min(values)).replace("${name}", "contoso") for name, values in environment().items()}
    texts |= {"GEOMILL_LINK_SECRET": "s" * 40, "GEOMILL_CALLBACK_SECRET": "s" * 40}
    texts |= {"GEOMILL_PUBLIC_URL": "https://a.example", "GEOMILL_EXTERNAL_URL": "https://b.example"}
    texts["MANAGED_IDENTITY_CLIENT_ID"] = "an-identity"
    texts["GEOMILL_DATA_FACTORY"] = (
        "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg"
        "/providers/Microsoft.DataFactory/factories/contoso-factory"
    )
    texts["SERVICE_BUS_NAMESPACE"] = "contoso.servicebus.windows.net"
    for name in [name for name in os.environ if name in variables()]:
        monkeypatch.delenv(name)
    for name, value in texts.items():
        if name in variables():
            monkeypatch.setenv(name, value)
    settings = Settings({name: value for name, value in texts.items() if name in variables()})
    for url in (settings.database.database_url, settings.database.external_database_url):
        assert url is not None
        assert url.endswith("passfile=azure-identity%3Aan-identity")
    assert str(parse_location(settings.storage.silver or "")) == "az://contosogeo"


def test_each_command_exists() -> None:
    commands = [entry["args"] for entry in APPS.objects() if isinstance(entry.get("args"), list)]
    assert {command[0] for command in commands} == {"gateway", "serve", "orchestrator", "worker", "db"}
    assert [refusal(command) for command in commands] == [None] * len(commands)


def test_the_queues_are_ours_as_the_documents_describe_them() -> None:
    bus = named("bus")
    assert set(bus.variable("queues")) == {JOBS_QUEUE, *TASK_QUEUES}
    (queue,) = (entry for entry in bus.objects() if "lockDuration" in entry)
    expected = {
        "lockDuration": "PT5M",
        "defaultMessageTimeToLive": "P1D",
        "maxDeliveryCount": 10,
        "maxSizeInMegabytes": 1024,
        "requiresDuplicateDetection": True,
    }
    assert {name: queue[name] for name in expected} == expected


def test_every_queue_of_tasks_has_a_worker_that_is_scaled_by_it() -> None:
    workers = APPS.variable("workers")
    assert sorted(queue for worker in workers for queue in worker["queues"]) == sorted(TASK_QUEUES)
    for worker in workers:
        served = [worker["args"][n + 1] for n, word in enumerate(worker["args"]) if word == "--queue"]
        assert served == worker["queues"]
        assert worker["args"][-1] == worker["slots"]
        assert all(f"'{queue}'" in worker["query"].replace("\\'", "'") for queue in served)


def test_a_worker_has_time_to_hand_over() -> None:
    name = "terminationGracePeriodSeconds"
    grace = {entry[name] for entry in APPS.objects() if name in entry}
    drains = [int(value) for value in environment()["GEOMILL_DRAIN_SECONDS"]]
    assert max(grace) == 600, "Azure allows no more"
    assert max(drains) + 60 <= max(grace)


def test_scaling_asks_the_question_that_kubernetes_asks() -> None:
    """That one is run against a real queue in tests/deploy/kubernetes."""
    asked = {
        " ".join(trigger["metadata"]["query"].split())
        for manifest in KustomizeOverlay("postgres").of_kind("ScaledObject")
        for trigger in manifest["spec"]["triggers"]
    }
    assert {worker["query"].replace("\\'", "'") for worker in APPS.variable("workers")} == asked


def test_the_containers_are_those_that_geomill_writes_to() -> None:
    containers = named("storage").variable("containers")
    ours = {RASTER_CONTAINER, VECTOR_CONTAINER, INTERMEDIATE_CONTAINER, PUBLISHED, LARGE_CONTAINER}
    assert set(containers["silver"]) == ours
    assert containers["external"] == [PUBLIC_CONTAINER]


def test_keys_and_passwords_open_nothing() -> None:
    (account,) = (entry for entry in named("storage").objects() if "allowSharedKeyAccess" in entry)
    assert (account["allowSharedKeyAccess"], account["allowBlobPublicAccess"]) == (False, False)
    (auth,) = (entry for entry in named("database").objects() if "passwordAuth" in entry)
    assert auth["passwordAuth"] == "Disabled"
    assert named("bus").path.read_text().count("disableLocalAuth: true") == 1
    by_reference = {entry["name"] for entry in APPS.objects() if "secretRef" in entry and "name" in entry}
    assert {name for name in environment() if "SECRET" in name} <= by_reference


def test_the_pipeline_takes_what_an_export_passes() -> None:
    factory = named("factory")
    (pipeline,) = (entry for entry in factory.objects() if "activities" in entry and "parameters" in entry)
    assert set(pipeline["parameters"]) == {"exportId", "files"}
    assert f"name: '{PIPELINE}'" in factory.path.read_text()
    used = set(re.findall(r"item\(\)\.(\w+)", factory.path.read_text()))
    assert used == {"sourceContainer", "sourcePath", "targetContainer", "targetPath"}
    assert environment()["GEOMILL_DATA_FACTORY_PIPELINE"] == {PIPELINE}


def test_the_example_of_parameters_is_complete() -> None:
    main = named("main")
    example = json.loads((FOLDER / "parameters.example.json").read_text())["parameters"]
    assert main.required <= set(example) <= set(main.declared("parameter_declaration"))


def test_an_identity_goes_to_its_process() -> None:
    main = named("main")
    processes = main.variable("processes")
    pairs = re.findall(r"\b([a-z]+?)(?:Id)?: identities\.outputs\.\w+\[(\d)\]", main.path.read_text())
    assert len(pairs) > 15
    assert [processes[int(number)] for _, number in pairs] == [process for process, _ in pairs]
