"""The Dockerfile: hadolint has nothing against it, and it agrees with manifests, locks and the code.

No test builds the image, because that takes Docker. `test_wheel.py` runs the commands that install the packages.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from geomill import __version__
from tests.deploy import dockerfile
from tests.deploy.dockerfile import FILE, ROOT
from tests.deploy.kubernetes.manifests import KustomizeOverlay

HADOLINT = Path(sys.executable).with_name("hadolint")


def lint(text: str) -> str:
    run = subprocess.run([HADOLINT, "-"], input=text, capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


def test_hadolint_has_nothing_against_it() -> None:
    assert lint(FILE.read_text(encoding="utf-8")) == ""


def test_hadolint_would_say_something() -> None:
    assert "DL3002" in lint(FILE.read_text(encoding="utf-8").replace("USER 10001:10001", "USER root"))


def test_the_image_is_not_root_and_starts_geomill() -> None:
    assert dockerfile.of("image", "USER") == ["10001:10001"]
    assert json.loads(dockerfile.of("image", "ENTRYPOINT")[0]) == ["geomill"]


def test_the_manifests_run_as_the_user_of_the_image_and_write_where_it_may() -> None:
    (environment,) = dockerfile.of("image", "ENV")
    (data,) = re.findall(r"GEOMILL_DATA=(\S+)", environment)
    for workload in KustomizeOverlay("postgres").workloads.values():
        context = workload.pod["securityContext"]
        assert {context["runAsUser"], context["runAsGroup"], context["fsGroup"]} == {10001}
        assert {mount["mountPath"] for mount in workload.container["volumeMounts"]} == {data, "/tmp"}
    assert f"/var/lib/geomill {data}/bronze" in dockerfile.of("image", "RUN")[0]


def test_the_documented_tag_is_that_of_this_release() -> None:
    assert set(re.findall(r"geomill:(\d\S+)", FILE.read_text(encoding="utf-8"))) == {__version__}


def test_everything_that_is_copied_is_sent_to_the_builder() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for stage in ("console", "packages"):
        for copy in dockerfile.of(stage, "COPY"):
            if copy.startswith("--from="):
                continue
            *sources, _ = copy.split()
            for source in sources:
                assert (ROOT / source).exists()
                assert any(source == path or source.startswith(f"{path}/") for path in sent), source


def versions(name: str) -> set[str]:
    return set(re.findall(r"^([\w.\[\]-]+==\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("name", ["requirements-server.lock", "requirements-build.lock"])
def test_the_image_has_the_versions_that_are_tested(name: str) -> None:
    assert versions(name)
    assert versions(name) <= versions("requirements.lock")


def test_the_image_has_no_tools_of_development() -> None:
    names = {version.split("==")[0] for version in versions("requirements-server.lock")}
    assert "psycopg" in names
    assert not names & {"pytest", "ruff", "mypy", "hypothesis", "playwright"}
