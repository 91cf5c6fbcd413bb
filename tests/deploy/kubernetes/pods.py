"""The workloads of the manifests as processes, against a real PostgreSQL. Each is in a network of its own, which lets
through what its policies allow, and cannot write to the root file system.

Other than in a cluster: the image is this checkout, which stays visible if it lies in /tmp, and its user is root. The
zones are folders, secrets are made up, and the policies know ports and not addresses.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from secrets import token_hex
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from geomill.cli.private import EXTERNAL_DATABASE
from geomill.domain.access.api_key import Secret
from geomill.domain.access.database_role import DatabaseRole
from geomill.domain.access.principal import Role
from geomill.embedded import DATABASE, Cluster
from geomill.embedded.place import DataPlace
from geomill.store import keys
from geomill.store.pool import open_pool
from tests.chaos.network import NETWORKS, Network
from tests.deploy.kubernetes.manifests import KustomizeOverlay, Workload, policies_of, ports
from tests.prepared import copy_prepared

IMAGE = Path(__file__).parents[3]
GEOMILL = str(Path(sys.executable).with_name("geomill"))
POSTGRESQL_PORT = 5432
START_SECONDS = 180.0
DATABASE_KEYS = {
    ("geomill-databases", "engine"): (DATABASE, DatabaseRole.ENGINE),
    ("geomill-databases", "loader"): (DATABASE, DatabaseRole.LOADER),
    ("geomill-databases", "gateway"): (DATABASE, DatabaseRole.GATEWAY),
    ("geomill-databases", "reader"): (DATABASE, DatabaseRole.READER),
    ("geomill-databases", "external-engine"): (EXTERNAL_DATABASE, DatabaseRole.ENGINE),
    ("geomill-databases", "external-gateway"): (EXTERNAL_DATABASE, DatabaseRole.GATEWAY),
    ("geomill-databases", "external"): (EXTERNAL_DATABASE, DatabaseRole.EXTERNAL),
    ("geomill-owner", "inside"): (DATABASE, DatabaseRole.OWNER),
    ("geomill-owner", "outside"): (EXTERNAL_DATABASE, DatabaseRole.OWNER),
}
"""The Secrets that the deployment asks for, and what is in them."""

MADE_UP = {("geomill-secrets", key): token_hex(24) for key in ("link-secret", "callback-secret", "metrics-key")}

READ_ONLY = """
mount --make-rprivate /
for folder in "$DATA" "$ZONES" "$TEMPORARY"; do mount --bind "$folder" "$folder"; done
mkdir -p "$TEMPORARY/image"
mount --bind "$IMAGE" "$TEMPORARY/image"
mount --rbind "$TEMPORARY" /tmp
[ -d "$IMAGE" ] || { mkdir -p "$IMAGE"; mount --bind /tmp/image "$IMAGE"; }
while read -r _ place _; do
    case "$place" in
        /proc*|/sys*|/dev*|/tmp|"$DATA"|"$ZONES"|"$TEMPORARY") ;;
        *) mount -o remount,bind,ro "$place" ;;
    esac
done < /proc/self/mounts
if touch /written-by-a-pod 2>/dev/null; then echo "the root file system can be written" >&2; exit 71; fi
exec "$@"
"""


class Pod:
    """A workload that runs."""

    def __init__(self, workload: Workload, network: Network, folder: Path) -> None:
        self.workload, self.network = workload, network
        self.data, self.temporary = folder / workload.name / "data", folder / workload.name / "tmp"
        self.log = folder / workload.name / "log"
        for place in (self.data, self.temporary):
            place.mkdir(parents=True)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://{self.network.roles}:{self.workload.port}"

    def start(self, environ: dict[str, str], zones: Path) -> None:
        places = {"IMAGE": str(IMAGE), "DATA": str(self.data), "ZONES": str(zones), "TEMPORARY": str(self.temporary)}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.network.inside, "sh", "-ec", READ_ONLY, "pod", GEOMILL, *self.workload.args],
                env={**environ, **places},
                stdout=log,
                stderr=log,
            )

    def wait(self, seconds: float) -> int:
        assert self.process is not None
        return self.process.wait(seconds)

    def stop(self) -> int:
        """Stop the pod as a cluster does, and return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.wait(self.workload.pod["terminationGracePeriodSeconds"])

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class PodCluster:
    """All workloads of an overlay, and the database they share. The folders of the zones are shared, too."""

    def __init__(self, overlay: KustomizeOverlay) -> None:
        self._overlay = overlay
        self._stack = ExitStack()
        self.pods: dict[str, Pod] = {}

    def __enter__(self) -> Self:
        with self._stack as stack:
            self.folder = Path(tempfile.mkdtemp(prefix="gm-pods-", dir="/var/tmp"))
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self.folder.chmod(0o755)
            self.zones = self.folder / "zones"
            for zone in ("bronze", "silver", "external"):
                (self.zones / zone).mkdir(parents=True)
            for name, workload in self._overlay.workloads.items():
                self.pods[name] = Pod(workload, stack.enter_context(Network()), self.folder)
            self._start_database(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start_database(self, stack: ExitStack) -> None:
        data = self.folder / "database"
        copy_prepared(data)
        with (DataPlace.of(data).pgdata / "pg_hba.conf").open("a", encoding="utf-8") as file:
            file.write(f"host all all {NETWORKS} scram-sha-256\n")
        addresses = ",".join(["127.0.0.1", *(pod.network.server for pod in self.pods.values())])
        self.database = Cluster(data, settings={"listen_addresses": addresses})
        stack.callback(self.database.stop, "immediate")
        self.database.start()

    def start(self, name: str) -> Pod:
        pod = self.pods[name]
        self._stack.callback(pod.kill)
        self._admit(pod)
        pod.start(self._environ(pod), self.zones)
        return pod

    def _environ(self, pod: Pod) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        zones = {f"GEOMILL_{zone.upper()}": str(self.zones / zone) for zone in ("bronze", "silver", "external")}
        settings = {name: zones.get(name, value) for name, value in pod.workload.settings.items()}
        return {**inherited, "HOME": str(pod.data), "GEOMILL_DATA": str(pod.data), **settings, **self._secrets(pod)}

    def _secrets(self, pod: Pod) -> dict[str, str]:
        values = {}
        for variable, reference in pod.workload.secrets.items():
            if reference in DATABASE_KEYS:
                database, role = DATABASE_KEYS[reference]
                url = self.database.url(database, role=role, tcp=True)
                values[variable] = url.replace("127.0.0.1", pod.network.server)
            else:
                values[variable] = MADE_UP[reference]
        return values

    def _admit(self, pod: Pod) -> None:
        """Let through what the network policies allow, by their ports, and nothing else."""
        policies = policies_of(self._overlay, pod.workload)
        inward = {port for policy in policies for port in ports(policy["spec"].get("ingress", []))}
        outward = {port for policy in policies for port in ports(policy["spec"].get("egress", []))}
        if POSTGRESQL_PORT in outward:
            outward.add(urlsplit(self.database.url(tcp=True)).port or POSTGRESQL_PORT)
        pod.network.admit(inward, outward)

    def key(self) -> str:
        """Make an administrator's key."""

        async def make() -> str:
            secret = Secret.new()
            async with open_pool(self.database.url(), size=1) as pool, pool.connection() as conn:
                await keys.create(conn, secret, name="smoke", roles=[Role.ADMIN], created_by="smoke")
            return secret.reveal()

        return asyncio.run(make())

    def wait_for(self, name: str) -> None:
        """Wait until the pod's readiness probe succeeds."""
        path = self.pods[name].workload.container["readinessProbe"]["httpGet"]["path"]
        self._eventually(lambda: _answers(f"{self.pods[name].address}{path}"), name)

    def wait_for_platform(self) -> None:
        self._eventually(lambda: _answers(f"{self.pods['gateway'].address}/health/ready"), "gateway")

    def _eventually(self, true: Callable[[], bool], name: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not true():
            logs = {n: p.log.read_text()[-2000:] for n, p in self.pods.items() if p.log.exists()}
            assert time.monotonic() < deadline, f"{name} is not ready: {json.dumps(logs, indent=1)}"
            time.sleep(0.1)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def submitted(geomill: Callable[..., Any], address: str, key: str, file: Path) -> str:
    """Publish a raster through the gateway and make it public. Returns the asset's id."""
    there = {"GEOMILL_URL": address, "GEOMILL_KEY": key}
    references = [word for name in ("dataset_id", "resource_id", "version_id") for word in ("--ref", f"{name}=smoke")]
    sent = geomill("assets", "submit", str(file), "--data-type", "raster", *references, "--wait", "--json", **there)
    assert sent.code == 0, sent.err + sent.out
    asset_id = str(sent.json["asset_id"])
    decided = geomill("assets", "approve", asset_id, "--clearance", "public", "--json", **there)
    assert decided.code == 0, decided.err
    waited = geomill("assets", "status", decided.json["export_job_id"], "--wait", "--json", **there)
    assert waited.json["status"] == "completed", waited.out
    return asset_id
