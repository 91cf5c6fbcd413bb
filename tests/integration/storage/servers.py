"""Real servers that speak Azure Blob and S3: Azurite and moto, each a process of its own."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

import httpx

from geomill.storage.connection_string import EMULATOR_ACCOUNT, EMULATOR_KEY
from tests.integration.storage.certificates import ServerCertificate

ROOT = Path(__file__).parents[3]
PATIENCE = 60.0
"""Seconds. A busy machine needs some until a new server answers."""
AZURITE = ROOT / ".local/azurite/node_modules/azurite/dist/src/blob/main.js"
MOTO = """
import logging, sys
logging.getLogger("werkzeug").setLevel(logging.ERROR)
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("listens on http://127.0.0.1:%d" % server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def _serving(command: list[str], folder: Path) -> Iterator[str]:
    """The URL that the process says it listens on."""
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout
    assert process.stdin
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if match := re.search(r"listens on (https?://\S+)", line):
                yield match[1]
                return
        raise AssertionError(f"the server did not start: {''.join(lines)}")
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@contextmanager
def azurite(folder: Path, certificate: ServerCertificate | None = None) -> Iterator[str]:
    """Its endpoint. With a certificate it speaks TLS, and takes tokens beside the account's key."""
    assert AZURITE.exists(), "Azurite is not installed: script/setup --tests does it, with npm"
    options = ["--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence", "--skipApiVersionCheck"]
    if certificate:
        options += ["--oauth", "basic", "--cert", str(certificate.certificate), "--key", str(certificate.key)]
    with _serving(["node", str(AZURITE), *options, "--disableTelemetry"], folder) as url:
        yield f"{url}/{EMULATOR_ACCOUNT}"


@contextmanager
def moto(folder: Path) -> Iterator[str]:
    with _serving([sys.executable, "-c", MOTO], folder) as url:
        yield url


def make_bucket(endpoint: str, bucket: str) -> None:
    httpx.put(f"{endpoint}/{bucket}", timeout=PATIENCE).raise_for_status()


def uploads_under_way(endpoint: str, bucket: str, prefix: str) -> int:
    return httpx.get(f"{endpoint}/{bucket}?uploads").text.count(f"<Key>{prefix}")


def make_container(endpoint: str, container: str) -> None:
    """Signed with the shared key, as Azure's documentation describes."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-12-02"}
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    resource = f"/{EMULATOR_ACCOUNT}/{EMULATOR_ACCOUNT}/{container}\nrestype:container"
    text = "PUT" + "\n" * 12 + lines + resource
    signature = hmac.new(base64.b64decode(EMULATOR_KEY), text.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {EMULATOR_ACCOUNT}:{base64.b64encode(signature).decode()}"
    answer = httpx.put(f"{endpoint}/{container}?restype=container", headers=headers, timeout=PATIENCE)
    if answer.status_code != httpx.codes.CONFLICT:  # it exists already
        answer.raise_for_status()
