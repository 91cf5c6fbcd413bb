"""The manifests agree with the code, and with each other: commands, settings, routes, times, ports, links."""

from __future__ import annotations

import os
from ipaddress import ip_address, ip_network

import pytest

from geomill import __version__
from geomill.api.access import EVERYONE, RULES
from geomill.cli.environment import NEEDS, WITHHELD
from geomill.cli.serving import GRACE_SECONDS
from geomill.domain.engine.message import TASK_QUEUES
from geomill.serve.app import OPEN
from geomill.settings import Settings, variables
from tests.deploy.commands import refusal
from tests.deploy.kubernetes.manifests import (
    OVERLAYS,
    KustomizeOverlay,
    Workload,
    megabytes,
    option,
    policies_of,
    ports,
)

SERVICE_BUS = {"GEOMILL_BROKER", "SERVICE_BUS_NAMESPACE"}
"""Settings of the broker on Service Bus, which is built beside this."""
URL = "postgresql://role:password@db.internal/geomill"
SECRET = "a-secret-that-is-long-enough-for-every-setting"
END_SECONDS = 30
"""Time that a worker or an orchestrator has to say goodbye, beside the drain."""
BASE_MB = 512
"""Memory of a worker without its task processes."""

WORKLOADS = [
    (overlay, workload) for overlay in map(KustomizeOverlay, OVERLAYS) for workload in overlay.workloads.values()
]
workloads = pytest.mark.parametrize(
    "workload", [w for _, w in WORKLOADS], ids=[f"{o.name}-{w.name}" for o, w in WORKLOADS]
)
OVERLAY = KustomizeOverlay("postgres")
SERVERS = [OVERLAY.workloads[name] for name in ("gateway", "internal", "external")]
WORKERS = [OVERLAY.workloads[name] for name in ("worker-light", "worker-heavy")]
servers = pytest.mark.parametrize("workload", SERVERS, ids=lambda w: w.name)
workers = pytest.mark.parametrize("workload", WORKERS, ids=lambda w: w.name)


@workloads
def test_the_command_exists(workload: Workload) -> None:
    assert refusal(workload.args) is None
    assert "command" not in workload.container


@workloads
def test_every_variable_is_a_setting_with_a_valid_value(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {name: URL if name.endswith("_DATABASE_URL") else SECRET for name in workload.secrets}
    environ = {**workload.settings, **secrets}
    assert set(environ) <= set(variables()) | SERVICE_BUS
    for name in [name for name in os.environ if name in variables()]:
        monkeypatch.delenv(name)
    known = {name: value for name, value in environ.items() if name in variables()}
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    Settings(known)


@workloads
def test_a_secret_comes_by_reference(workload: Workload) -> None:
    values = " ".join(workload.settings.values())
    assert not [name for name in workload.settings if "SECRET" in name or "KEY" in name or "DATABASE_URL" in name]
    assert "@" not in values


@workloads
def test_the_image_is_that_of_this_release(workload: Workload) -> None:
    assert workload.container["image"] == f"geomill:{__version__}"


@workloads
def test_services_of_the_cluster_do_not_become_settings(workload: Workload) -> None:
    assert workload.pod["enableServiceLinks"] is False


@workloads
def test_the_pod_has_no_right_that_it_does_not_need(workload: Workload) -> None:
    assert workload.pod["automountServiceAccountToken"] is False
    assert workload.pod["securityContext"]["runAsNonRoot"] is True
    assert workload.pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert workload.container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    accounts = {manifest["metadata"]["name"] for manifest in OVERLAY.of_kind("ServiceAccount")}
    assert workload.pod["serviceAccountName"] in accounts


def test_the_external_server_knows_nothing_of_the_inside() -> None:
    external = OVERLAY.workloads["external"]
    needed = set(variables(NEEDS["external"])) - set(WITHHELD["external"])
    needed |= {"GEOMILL_EXTERNAL_DATABASE_URL"}
    assert set(external.settings) | set(external.secrets) <= needed
    assert external.secrets["GEOMILL_EXTERNAL_DATABASE_URL"] == ("geomill-databases", "external")
    users = [w.name for w in OVERLAY.workloads.values() if ("geomill-databases", "external") in w.secrets.values()]
    assert users == ["external"]


def test_only_the_migration_knows_the_owner() -> None:
    owners = [
        w.name for w in OVERLAY.workloads.values() if any(name == "geomill-owner" for name, _ in w.secrets.values())
    ]
    assert owners == ["migrate"]


@servers
def test_probes_call_routes_that_need_no_credential(workload: Workload) -> None:
    open_routes = set(OPEN) if workload.args[0] == "serve" else {r for r, rule in RULES.items() if rule is EVERYONE}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        call = workload.container[probe]["httpGet"]
        assert f"GET {call['path']}" in open_routes
        assert call["port"] == "http"
    assert workload.container["livenessProbe"]["httpGet"]["path"] == "/health/live"


@servers
def test_command_container_and_service_name_the_same_port(workload: Workload) -> None:
    assert option(workload.args, "--port") == [str(workload.port)]
    assert option(workload.args, "--host") == ["0.0.0.0"]
    (service,) = [m for m in OVERLAY.of_kind("Service") if selects(m["spec"]["selector"], workload)]
    assert [port["targetPort"] for port in service["spec"]["ports"]] == ["http"]


@servers
def test_a_server_has_time_for_its_last_requests(workload: Workload) -> None:
    word, seconds = workload.container["lifecycle"]["preStop"]["exec"]["command"]
    assert word == "sleep"
    assert workload.pod["terminationGracePeriodSeconds"] >= int(seconds) + GRACE_SECONDS + 5


@workers
def test_a_worker_has_time_to_drain(workload: Workload) -> None:
    drain = int(workload.settings["GEOMILL_DRAIN_SECONDS"])
    assert workload.pod["terminationGracePeriodSeconds"] >= drain + END_SECONDS


@servers
def test_a_server_ends_itself_before_the_kernel_ends_it(workload: Workload) -> None:
    limit = megabytes(workload.container["resources"]["limits"]["memory"])
    inspections = int(workload.settings.get("GEOMILL_INSPECT_PROCESSES", 0))
    inspected = inspections * int(workload.settings.get("GEOMILL_INSPECT_MEMORY_MB", 0))
    assert limit >= int(workload.settings["GEOMILL_SERVE_MEMORY_MB"]) + inspected + 256


@workers
def test_the_memory_of_all_task_processes_fits(workload: Workload) -> None:
    settings = {name: int(workload.settings[f"GEOMILL_TASK_{name}"]) for name in ("PROCESSES", "SPARE", "MEMORY_MB")}
    needed = (settings["PROCESSES"] + settings["SPARE"]) * settings["MEMORY_MB"] + BASE_MB
    assert megabytes(workload.container["resources"]["limits"]["memory"]) >= needed


@pytest.mark.parametrize("overlay", [KustomizeOverlay(name) for name in OVERLAYS], ids=OVERLAYS)
def test_every_queue_has_one_kind_of_worker_that_scales_with_it(overlay: KustomizeOverlay) -> None:
    served = [queue for worker in WORKERS for queue in option(worker.args, "--queue")]
    assert sorted(served) == sorted(TASK_QUEUES)
    for scaler in overlay.of_kind("ScaledObject"):
        worker = overlay.workloads[scaler["spec"]["scaleTargetRef"]["name"]]
        assert "replicas" not in worker.manifest["spec"]
        text = str(scaler["spec"]["triggers"])
        for queue in TASK_QUEUES:
            assert (queue in text) == (queue in option(worker.args, "--queue"))
        targets = {
            t["metadata"].get("targetQueryValue") or t["metadata"]["messageCount"] for t in scaler["spec"]["triggers"]
        }
        assert targets == set(option(worker.args, "--concurrency"))


def test_a_disruption_takes_one_pod_of_a_kind_at_a_time() -> None:
    budgets = OVERLAY.of_kind("PodDisruptionBudget")
    for workload in OVERLAY.workloads.values():
        matching = [b for b in budgets if selects(b["spec"]["selector"]["matchLabels"], workload)]
        assert len(matching) == (0 if workload.manifest["kind"] == "Job" else 1)
        assert all(budget["spec"].get("maxUnavailable") == 1 for budget in matching)


def selects(selector: dict[str, str], workload: Workload) -> bool:
    return selector.items() <= workload.labels.items()


PORTS_OUT = {"postgres": {53, 443, 5432}, "servicebus": {53, 443, 5432, 5671}}
ENGINE = ("orchestrator", "worker-light", "worker-heavy")
METADATA = ip_address("169.254.169.254")


@pytest.mark.parametrize("overlay", [KustomizeOverlay(name) for name in OVERLAYS], ids=OVERLAYS)
def test_the_network_admits_the_links_that_are_used_and_no_others(overlay: KustomizeOverlay) -> None:
    (denial,) = [p for p in overlay.of_kind("NetworkPolicy") if p["metadata"]["name"] == "default-deny"]
    assert denial["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for workload in overlay.workloads.values():
        policies = policies_of(overlay, workload)
        inward = {port for policy in policies for port in ports(policy["spec"].get("ingress", []))}
        outward = {port for policy in policies for port in ports(policy["spec"].get("egress", []))}
        assert inward == ({workload.port} if workload.port else set())
        if workload.name == "migrate":
            assert outward == {53, 5432}
        else:
            assert outward == PORTS_OUT[overlay.name if workload.name in ENGINE else "postgres"]


@pytest.mark.parametrize("overlay", [KustomizeOverlay(name) for name in OVERLAYS], ids=OVERLAYS)
def test_no_pod_reaches_the_metadata_service_of_its_machine(overlay: KustomizeOverlay) -> None:
    """It hands out tokens of the machine's own identity, to a worker that a hostile file has taken over as well."""
    blocks = [
        target["ipBlock"]
        for policy in overlay.of_kind("NetworkPolicy")
        for rule in policy["spec"].get("egress", [])
        for target in rule["to"]
        if "ipBlock" in target
    ]
    assert blocks
    for block in blocks:
        if METADATA in ip_network(block["cidr"]):
            assert any(METADATA in ip_network(hole) for hole in block.get("except", []))


@pytest.mark.parametrize("overlay", [KustomizeOverlay(name) for name in OVERLAYS], ids=OVERLAYS)
def test_no_setting_names_an_identity_for_several_accounts(overlay: KustomizeOverlay) -> None:
    """Each service account has its own. Workload identity tells each pod which, and a setting for all would win."""
    for workload in overlay.workloads.values():
        assert not {"MANAGED_IDENTITY_CLIENT_ID", "AZURE_CLIENT_ID"} & set(workload.settings)
