from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from geomill.embedded import Cluster
from tests.prepared import copy_prepared

GEOMILL = str(Path(sys.executable).with_name("geomill"))


@dataclass(frozen=True)
class CommandResult:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Geomill = Callable[..., CommandResult]


@pytest.fixture(scope="session")
def geomill() -> Geomill:
    """Runs the real command: `geomill("jobs", "list", GEOMILL_DATABASE_URL=url)`."""

    def run(*arguments: str, **environ: str) -> CommandResult:
        done = subprocess.run(
            [GEOMILL, *arguments],
            env={**os.environ, "COLUMNS": "200", **environ},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return CommandResult(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def data() -> Iterator[Path]:
    """A data folder that does not exist yet. The server's unprivileged account can enter it."""
    with data_folder() as folder:
        yield folder


@pytest.fixture
def prepared_data(data: Path) -> Path:
    """A data folder as the first start leaves it: the private database is migrated and stopped."""
    copy_prepared(data)
    return data


@contextmanager
def data_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gm-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "data"
        Cluster(Path(folder) / "data").stop("immediate")
