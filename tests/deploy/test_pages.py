"""The pages that lead through a deployment name what exists: commands, settings, files, units, Secrets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from geomill.cli.lazy import Later
from geomill.cli.main import app
from geomill.settings import variables
from tests.deploy.kubernetes.manifests import OVERLAYS, KustomizeOverlay
from tests.deploy.kubernetes.test_consistency import SERVICE_BUS

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs/how-to"
PAGES = [
    HOW_TO / f"{name}.md"
    for name in (
        "deploy-on-azure",
        "deploy-on-kubernetes",
        "export-with-data-factory",
        "run-book",
        "run-on-many-machines",
    )
]
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def spoken(page: Path) -> str:
    """Return what is set as code: blocks and spans."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE))
    return "\n".join([*blocks, *spans])


def resolved(command: Any, words: list[str]) -> bool:
    """Whether the words lead to a command. What follows them are its arguments."""
    children = getattr(command, "commands", {})
    if not children:
        return True
    if not words or words[0] not in children:
        return False
    child = children[words[0]]
    return resolved(child.load() if isinstance(child, Later) else child, words[1:])


@pages
def test_every_command_exists(page: Path) -> None:
    said = re.sub(r"(namespace|--group|-u) geomill\b", "", spoken(page))  # names of another kind
    lines = re.findall(r"(?:^|[\s\"/])geomill ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*)*)", said, re.MULTILINE)
    commands = [line.split() for line in lines]
    assert commands
    assert [words for words in commands if not resolved(get_command(app), words)] == []


@pages
def test_every_setting_exists(page: Path) -> None:
    named = set(re.findall(r"\b(GEOMILL_[A-Z_]+[A-Z])\b", page.read_text(encoding="utf-8")))
    assert named <= set(variables()) | SERVICE_BUS


@pages
def test_every_file_of_the_deployment_exists(page: Path) -> None:
    named = set(re.findall(r"\bdeploy/[\w./@-]*\w", page.read_text(encoding="utf-8")))
    named = {name for name in named if not name.endswith("overlays/contoso") and name != "deploy/gateway"}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_unit_exists() -> None:
    named = set(re.findall(r"\bgeomill-[a-z-]+(?=@|[ `\n])", spoken(HOW_TO / "run-on-many-machines.md")))
    units = {file.stem.removesuffix("@") for file in (ROOT / "deploy/systemd").glob("*.service")}
    assert named - {"geomill-gateway"} <= units
    assert units <= named | {"geomill-internal"}
    environment = {
        name
        for file in (ROOT / "deploy/systemd").glob("*.service")
        for name in re.findall(r"^EnvironmentFile=/etc/geomill/(.*)$", file.read_text(), re.MULTILINE)
    }
    page = (HOW_TO / "run-on-many-machines.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^ *\| `(\w+\.env)` \|", page, re.MULTILINE)) == environment


def test_every_secret_is_created_with_its_keys() -> None:
    text = spoken(HOW_TO / "deploy-on-kubernetes.md")
    created = {
        (name, key)
        for name, rest in re.findall(r"create secret generic (\S+)(.*)", text)
        for key in re.findall(r"--from-literal=([\w-]+)=", rest)
    }
    used = {
        secret
        for overlay in map(KustomizeOverlay, OVERLAYS)
        for workload in overlay.workloads.values()
        for secret in workload.secrets.values()
    }
    (scaler,) = (
        (reference["name"], reference["key"])
        for manifest in KustomizeOverlay("postgres").of_kind("TriggerAuthentication")
        for reference in manifest["spec"]["secretTargetRef"]
    )
    assert created == used | {scaler}


def test_the_page_of_sizes_has_those_of_the_manifests() -> None:
    page = (HOW_TO / "deploy-on-kubernetes.md").read_text(encoding="utf-8")
    rows = {
        name: (cores, memory, limit)
        for name, cores, memory, limit in re.findall(
            r"^\| ([\w-]+)(?:, \w+)? \| (\d) cores?, (\S+ \w+) \| (\S+ \w+) \|", page, re.MULTILINE
        )
    }
    for workload in KustomizeOverlay("postgres").workloads.values():
        if workload.name in ("migrate", "external"):
            continue
        resources = workload.container["resources"]
        asked = (
            resources["requests"]["cpu"],
            re.sub(r"(?=[MG]i)", " ", resources["requests"]["memory"]) + "B",
            re.sub(r"(?=[MG]i)", " ", resources["limits"]["memory"]) + "B",
        )
        assert rows[workload.name] == asked


def test_the_page_of_roles_gives_each_process_the_databases_of_the_manifests() -> None:
    """A gateway without the external database could not hide a revoked asset at once."""
    page = (HOW_TO / "use-a-managed-postgresql.md").read_text(encoding="utf-8")
    rows = re.findall(r"^ *\| `geomill ([\w -]+)` \| (\S+) \|(.*)\|$", page, re.MULTILINE)
    named = {
        words: {*re.findall(r"GEOMILL_\w+_URL", also), *(["GEOMILL_DATABASE_URL"] if role != "none" else [])}
        for words, role, also in rows
    }
    workloads = KustomizeOverlay("postgres").workloads
    used = {
        words: {
            name
            for name in {**workloads[workload].settings, **workloads[workload].secrets}
            if name.endswith("DATABASE_URL")
        }
        for workload, words in {
            "orchestrator": "orchestrator",
            "worker-light": "worker",
            "gateway": "gateway",
            "internal": "serve --zone internal",
            "external": "serve --zone external",
        }.items()
    }
    assert named == used
