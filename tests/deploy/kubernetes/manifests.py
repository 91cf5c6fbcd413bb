"""Reads the manifests as kustomize does, as far as ours go: resources, and ConfigMaps from literals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy/kubernetes"
OVERLAYS = ("postgres", "servicebus")
UNDERSTOOD = {"apiVersion", "kind", "namespace", "resources", "configMapGenerator"}
"""The fields of a kustomization that this reader applies. Others would be lost here, so they are refused."""

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Workload:
    """A Deployment or a Job, with the settings that its ConfigMaps hold."""

    manifest: Manifest
    config_maps: Mapping[str, Mapping[str, str]]

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def pod(self) -> Manifest:
        pod: Manifest = self.manifest["spec"]["template"]["spec"]
        return pod

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.manifest["spec"]["template"]["metadata"]["labels"])

    @property
    def container(self) -> Manifest:
        (container,) = self.pod["containers"]
        return dict(container)

    @property
    def args(self) -> list[str]:
        return list(self.container["args"])

    @property
    def port(self) -> int | None:
        ports = self.container.get("ports", [])
        return int(ports[0]["containerPort"]) if ports else None

    @property
    def settings(self) -> dict[str, str]:
        """The settings whose values are in the manifests."""
        maps = [self.config_maps[source["configMapRef"]["name"]] for source in self.container.get("envFrom", [])]
        shared = {name: value for config in maps for name, value in config.items()}
        return {**shared, **{entry["name"]: entry["value"] for entry in self._env if "value" in entry}}

    @property
    def secrets(self) -> dict[str, tuple[str, str]]:
        """The settings whose values are in Secrets: variable to name and key."""
        references = {e["name"]: e["valueFrom"]["secretKeyRef"] for e in self._env if "valueFrom" in e}
        return {variable: (reference["name"], reference["key"]) for variable, reference in references.items()}

    @property
    def _env(self) -> list[dict[str, Any]]:
        return list(self.container.get("env", []))


class KustomizeOverlay:
    """The manifests of `kubectl apply -k deploy/kubernetes/overlays/<name>`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.config_maps: dict[str, dict[str, str]] = {}
        self.files: list[Path] = []
        self.manifests = list(self._read(FOLDER / "overlays" / name))

    def _read(self, folder: Path) -> Iterator[Manifest]:
        (kustomization,) = documents(folder / "kustomization.yaml")
        if unknown := set(kustomization) - UNDERSTOOD:
            raise ValueError(f"{folder}: these tests do not understand {unknown}")
        for reference in kustomization["resources"]:
            place = (folder / reference).resolve()
            if place.is_dir():
                yield from self._read(place)
            else:
                self.files.append(place)
                yield from documents(place)
        for generator in kustomization.get("configMapGenerator", []):
            literals = dict(literal.split("=", 1) for literal in generator["literals"])
            merged = self.config_maps.setdefault(generator["name"], {})
            if bool(merged) != (generator.get("behavior") == "merge"):
                raise ValueError(f"{folder}: the ConfigMap {generator['name']} is made twice, or merged into nothing")
            merged.update(literals)

    def of_kind(self, *kinds: str) -> list[Manifest]:
        return [manifest for manifest in self.manifests if manifest["kind"] in kinds]

    @cached_property
    def workloads(self) -> dict[str, Workload]:
        workloads = [Workload(manifest, self.config_maps) for manifest in self.of_kind("Deployment", "Job")]
        return {workload.name: workload for workload in workloads}


def documents(file: Path) -> list[Manifest]:
    return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))


def option(args: list[str], name: str) -> list[str]:
    """Return the values of an option that may be repeated."""
    return [value for word, value in pairwise(args) if word == name]


def megabytes(quantity: str) -> int:
    units = {"Mi": 1, "Gi": 1024}
    return int(quantity[:-2]) * units[quantity[-2:]]


def policies_of(overlay: KustomizeOverlay, workload: Workload) -> list[Manifest]:
    def matches(policy: Manifest) -> bool:
        expressions = policy["spec"]["podSelector"].get("matchExpressions", [])
        return bool(expressions) and all(workload.labels[e["key"]] in e["values"] for e in expressions)

    return [policy for policy in overlay.of_kind("NetworkPolicy") if matches(policy)]


def ports(rules: list[dict[str, Any]]) -> Iterator[int]:
    for rule in rules:
        yield from (port["port"] for port in rule["ports"])
