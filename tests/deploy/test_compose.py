"""The compose file agrees with the code, the manifests and the Dockerfile. No test starts it: that takes Docker."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from geomill import __version__
from geomill.domain.engine.message import TASK_QUEUES
from geomill.settings import variables
from tests.deploy import dockerfile
from tests.deploy.commands import refusal
from tests.deploy.dockerfile import ROOT
from tests.deploy.kubernetes.manifests import KustomizeOverlay, option

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
ROLES = {name: service for name, service in COMPOSE["services"].items() if name != "database"}
roles = pytest.mark.parametrize("name", ROLES)


@roles
def test_the_command_exists(name: str) -> None:
    assert refusal(ROLES[name]["command"]) is None


@roles
def test_every_variable_is_a_setting(name: str) -> None:
    assert set(ROLES[name]["environment"]) <= set(variables())


@roles
def test_a_role_has_few_rights(name: str) -> None:
    role = ROLES[name]
    assert role["image"] == f"geomill:{__version__}"
    assert role["read_only"] is True
    assert role["cap_drop"] == ["ALL"]
    assert "user" not in role  # that of the image, which is not root


@roles
def test_a_role_that_was_killed_comes_back(name: str) -> None:
    assert ROLES[name]["restart"] == ("no" if name == "migrate" else "unless-stopped")


def test_the_laptop_runs_the_commands_of_the_cluster() -> None:
    workloads = KustomizeOverlay("postgres").workloads
    assert {name: role["command"] for name, role in ROLES.items()} == {
        name: workload.args for name, workload in workloads.items() if name != "internal"
    }
    served = [queue for role in ROLES.values() for queue in option(role["command"], "--queue")]
    assert sorted(served) == sorted(TASK_QUEUES)


def test_only_this_machine_reaches_the_ports() -> None:
    published = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert sorted(published) == ["127.0.0.1:8000:8000", "127.0.0.1:8001:8001"]


def test_the_external_server_sees_one_zone_and_one_database() -> None:
    external = ROLES["external"]
    assert external["volumes"] == ["external:/var/lib/geomill/external:ro"]
    assert set(external["environment"]) == {"GEOMILL_EXTERNAL_DATABASE_URL"}


def test_volumes_are_declared_and_belong_to_the_user_of_the_image() -> None:
    (prepared,) = dockerfile.of("image", "RUN")
    for role in ROLES.values():
        for volume in role.get("volumes", []):
            name, path = re.match(r"([\w-]+):([^:]+)", volume).groups()  # type: ignore[union-attr]
            assert name in COMPOSE["volumes"]
            assert re.search(rf"{path}( |$)", prepared), path


def test_a_worker_has_time_to_drain() -> None:
    for name in ("worker-light", "worker-heavy"):
        grace = int(ROLES[name]["stop_grace_period"].removesuffix("s"))
        assert grace >= int(ROLES[name]["environment"]["GEOMILL_DRAIN_SECONDS"]) + 15
