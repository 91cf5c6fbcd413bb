"""The synchronous client is written from the asynchronous one."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

from geomill.client import AsyncClient, Client

ROOT = Path(__file__).parents[3]


def test_the_written_client_is_fresh() -> None:
    check = subprocess.run([ROOT / "script" / "client", "--check"], capture_output=True, text=True, check=False)
    assert check.returncode == 0, f"run script/client\n{check.stdout}{check.stderr}"


def test_both_have_the_same_operations() -> None:
    with Client("http://127.0.0.1:1", "key") as client:
        asynchronous = AsyncClient("http://127.0.0.1:1", "key")
        for name, group in vars(client).items():
            if not name.startswith("_"):
                assert _operations(group) == _operations(getattr(asynchronous, name)), name


def _operations(group: object) -> dict[str, list[str]]:
    methods = inspect.getmembers(group, inspect.ismethod)
    return {name: list(inspect.signature(method).parameters) for name, method in methods if not name.startswith("_")}


def test_it_imports_no_part_of_the_server() -> None:
    code = "import sys, geomill.client; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"fastapi", "psycopg", "rasterio", "numpy", "obstore", "jinja2", "yaml", "typer"} & set(loaded)
