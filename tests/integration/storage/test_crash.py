"""`kill -9` in the middle of an upload: nothing can be seen of it, and the next one succeeds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from geomill.domain.objectname import Zone
from geomill.storage import Storage, StorageRecipe
from geomill.storage.stores import STAGING, STALE_SECONDS
from geomill.storage.transfer import PART
from tests.integration.storage.conftest import CONTAINER, silver

DYING = """
import json, os, signal, sys
from pathlib import Path
from geomill.sdk import ObjectName
from geomill.storage import Storage, StorageRecipe

def die(done, total):
    if done > total / 2:
        os.kill(os.getpid(), signal.SIGKILL)

storage = Storage(StorageRecipe.from_json(json.load(sys.stdin)))
storage.sync.put_file(ObjectName.parse(sys.argv[1]), Path(sys.argv[2]), progress=die)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "source.bin"
    file.write_bytes(b"x" * (3 * PART))
    return file


def die(recipe: StorageRecipe, source: Path) -> None:
    command = [sys.executable, "-c", DYING, str(silver("big.bin")), str(source)]
    died = subprocess.run(command, input=json.dumps(recipe.to_json()), text=True, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr


def test_nothing_is_visible(recipe: StorageRecipe, source: Path) -> None:
    die(recipe, source)
    storage = Storage(recipe).sync
    assert not storage.exists(silver("big.bin"))
    assert storage.list(Zone.SILVER, CONTAINER) == []
    assert storage.put_file(silver("big.bin"), source).size == source.stat().st_size
    assert [info.size for info in storage.list(Zone.SILVER, CONTAINER)] == [3 * PART]


def test_what_was_there_before_stays(recipe: StorageRecipe, source: Path) -> None:
    storage = Storage(recipe).sync
    storage.put_bytes(silver("big.bin"), b"before")
    die(recipe, source)
    assert storage.read(silver("big.bin")) == b"before"


ENDING = """
import asyncio, json, sys
from geomill.sdk import ObjectName
from geomill.storage import Storage, StorageRecipe

storage = Storage(StorageRecipe.from_json(json.load(sys.stdin)))
name = ObjectName.parse(sys.argv[1])
async def main():
    await storage.put_bytes(name, b"1")
    await storage.stat(name)
storage.sync.exists(name) if sys.argv[2] == "sync" else asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("face", ["sync", "async"])
def test_a_process_may_end_right_after_its_work(tmp_path: Path, face: str) -> None:
    """With obstore's coroutines the process would abort about every second time."""
    text = json.dumps(StorageRecipe.in_folder(tmp_path).to_json())
    command = [sys.executable, "-c", ENDING, str(silver("x")), face]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True) for _ in range(8)]
    for process in running:
        process.communicate(text)
    assert [process.returncode for process in running] == [0] * 8


def test_leftovers_are_in_one_place_and_swept_when_they_are_old(tmp_path: Path, source: Path) -> None:
    recipe = StorageRecipe.in_folder(tmp_path / "data")
    die(recipe, source)
    zone = tmp_path / "data" / "silver"
    left = [file for file in zone.rglob("*") if file.is_file()]
    assert len(left) == 1
    assert left[0].parent == zone / STAGING
    Storage(recipe).sync.prepare()
    assert left[0].exists()
    long_ago = left[0].stat().st_mtime - STALE_SECONDS - 1
    os.utime(left[0], (long_ago, long_ago))
    Storage(recipe).sync.prepare()
    assert not left[0].exists()
