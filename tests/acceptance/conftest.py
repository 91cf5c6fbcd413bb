from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from geomill.embedded import Cluster

GEOMILL = str(Path(sys.executable).with_name("geomill"))


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Geomill = Callable[..., Ended]


@pytest.fixture
def geomill() -> Geomill:
    """Runs the real command: `geomill("jobs", "list", GEOMILL_DATABASE_URL=url)`."""

    def run(*arguments: str, **environ: str) -> Ended:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GEOMILL_")}
        done = subprocess.run(
            [GEOMILL, *arguments],
            env={**clean, "COLUMNS": "200", **environ},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def data() -> Iterator[Path]:
    """A data folder that the server's unprivileged account can enter."""
    with tempfile.TemporaryDirectory(prefix="gm-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "data"
        Cluster(Path(folder) / "data").stop("immediate")
