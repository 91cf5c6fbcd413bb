"""The manifests hold against the schemas of Kubernetes and KEDA, and kustomize reads them as these tests do."""

from __future__ import annotations

import json
import shutil
import subprocess
from copy import deepcopy
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from tests.deploy.kubernetes.manifests import FOLDER, OVERLAYS, ROOT, KustomizeOverlay, Manifest, documents

KEDA = ("ScaledObject", "TriggerAuthentication")
PACKAGES = ROOT / ".local/keda"
CHECK = Path(__file__).parent / "keda/check.mjs"

overlays = pytest.mark.parametrize("overlay", [KustomizeOverlay(name) for name in OVERLAYS], ids=OVERLAYS)


def against_kubernetes(manifest: Manifest) -> None:
    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def against_keda(manifests: list[Manifest]) -> str:
    assert PACKAGES.exists(), "script/setup --tests installs KEDA's schemas"
    lines = "\n".join(map(json.dumps, manifests))
    check = subprocess.run(["node", CHECK, PACKAGES], input=lines, capture_output=True, text=True, check=True)
    return check.stdout


@overlays
def test_kubernetes_accepts_every_manifest(overlay: KustomizeOverlay) -> None:
    own = [manifest for manifest in overlay.manifests if manifest["kind"] not in KEDA]
    assert own
    for manifest in own:
        against_kubernetes(manifest)


def test_an_unknown_field_of_kubernetes_is_refused() -> None:
    manifest = deepcopy(KustomizeOverlay("postgres").of_kind("Deployment")[0])
    manifest["spec"]["template"]["spec"]["terminationGraceSeconds"] = 30
    with pytest.raises(kubernetes_validate.ValidationError, match="terminationGraceSeconds"):
        against_kubernetes(manifest)


@overlays
@pytest.mark.slow
def test_keda_accepts_the_scalers(overlay: KustomizeOverlay) -> None:
    scalers = overlay.of_kind(*KEDA)
    assert len(scalers) == 3
    assert against_keda(scalers) == ""


@pytest.mark.slow
def test_an_unknown_field_and_a_wrong_value_of_keda_are_refused() -> None:
    misspelt, wrong = (deepcopy(KustomizeOverlay("postgres").of_kind("ScaledObject")[0]) for _ in range(2))
    misspelt["spec"]["maxReplicas"] = 3
    wrong["spec"]["maxReplicaCount"] = "3"
    assert "'\"maxReplicas\"' does not exist" in against_keda([misspelt])
    assert "maxReplicaCount must be integer" in against_keda([wrong])


def test_every_file_belongs_to_an_overlay() -> None:
    read = {file for name in OVERLAYS for file in KustomizeOverlay(name).files}
    assert read == {file for file in FOLDER.rglob("*.yaml") if file.name != "kustomization.yaml"}


def kustomize(name: str) -> list[Manifest]:
    command = ["kubectl", "kustomize", str(FOLDER / "overlays" / name)]
    built = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(built.stdout))


@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is in no package that script/setup installs")
@overlays
def test_kustomize_builds_what_these_tests_read(overlay: KustomizeOverlay) -> None:
    built = kustomize(overlay.name)
    identities = {(m["kind"], m["metadata"]["name"]) for m in built if m["kind"] != "ConfigMap"}
    assert identities == {(m["kind"], m["metadata"]["name"]) for m in overlay.manifests}
    maps = {m["metadata"]["name"].rsplit("-", 1)[0]: m["data"] for m in built if m["kind"] == "ConfigMap"}
    assert maps == overlay.config_maps
    assert {m["metadata"].get("namespace") for m in built if m["kind"] != "Namespace"} == {"geomill"}


def test_no_secret_is_in_a_file() -> None:
    assert not [file for file in FOLDER.rglob("*.yaml") for m in documents(file) if m["kind"] == "Secret"]
