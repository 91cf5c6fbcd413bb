"""The built console: its weight, its files, and that a wheel has it."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from geomill.api.routes.console import FOLDER, policy

ROOT = Path(__file__).parents[2]
BUDGET = 150_000
"""The most bytes, compressed, that the first page may load without the map."""


def first_load() -> set[str]:
    """The files that the page loads before somebody chooses a screen: its entry, and everything that this imports."""
    manifest = json.loads((FOLDER / "manifest.json").read_text())
    names, waiting = {"index.html"}, ["index.html"]
    while waiting:
        chunk = manifest[waiting.pop()]
        names |= {chunk["file"], *chunk.get("css", ())}
        waiting += [name for name in chunk.get("imports", ()) if manifest[name]["file"] not in names]
    return names


def compressed(name: str) -> int:
    return len(gzip.compress((FOLDER / name).read_bytes(), 9))


def test_the_first_load_is_light() -> None:
    sizes = {name: compressed(name) for name in first_load()}
    assert sum(sizes.values()) <= BUDGET, sizes


def test_the_overview_adds_little() -> None:
    manifest = json.loads((FOLDER / "manifest.json").read_text())
    screen = manifest["src/screens/overview/Overview.tsx"]
    names = {screen["file"], *screen.get("css", ()), *(manifest[name]["file"] for name in screen.get("imports", ()))}
    assert sum(compressed(name) for name in names | first_load()) <= BUDGET


def test_the_page_has_no_inline_script_or_style_and_no_other_host() -> None:
    page = (FOLDER / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*src=)", page) == []
    assert "<style" not in page
    assert "style=" not in page
    assert [link for link in re.findall(r'(?:src|href)="([^"]+)"', page) if not link.startswith("/console/")] == []


def test_files_lie_beside_their_compressed_copies() -> None:
    scripts = [path for path in (FOLDER / "files").iterdir() if path.suffix in (".js", ".css", ".json")]
    assert scripts
    for path in scripts:
        assert gzip.decompress(path.with_name(path.name + ".gz").read_bytes()) == path.read_bytes()


def test_the_policy_allows_this_host_alone_and_the_base_map_of_the_settings() -> None:
    rules = dict(rule.split(" ", 1) for rule in policy(None).split("; "))
    assert (rules["default-src"], rules["script-src"], rules["style-src"]) == ("'none'", "'self'", "'self'")
    assert (rules["frame-ancestors"], rules["base-uri"]) == ("'none'", "'none'")
    assert "unsafe" not in policy(None)
    assert "http" not in policy(None)
    with_map = dict(rule.split(" ", 1) for rule in policy("https://tiles.example.org/a/{z}/{x}/{y}.png").split("; "))
    assert with_map["img-src"].endswith(" https://tiles.example.org")
    assert with_map["connect-src"] == "'self' https://tiles.example.org"
    assert with_map["script-src"] == "'self'"


def test_the_lock_names_no_registry() -> None:
    lock = (ROOT / "console/package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert "://" not in re.sub(r'"(url|homepage|license)": "[^"]*"', "", lock)


def runs_on(engine: str, version: tuple[int, ...]) -> bool:
    """Whether a range of npm, such as `^18.0.0 || >=20.0.0`, admits the version."""
    for alternative in engine.split("||"):
        sign, text = re.fullmatch(r"\s*(\^|>=)?\s*([\d.]+)\s*", alternative).groups()  # type: ignore[union-attr]
        least = tuple(int(part) for part in text.split("."))
        if version >= least and (sign == ">=" or version[0] == least[0]):
            return True
    return False


def test_the_tools_run_on_the_oldest_node() -> None:
    oldest = (18, 20, 4)  # Debian 12's
    lock = json.loads((ROOT / "console/package-lock.json").read_text())["packages"]
    engines = {name: entry["engines"]["node"] for name, entry in lock.items() if name == "" or "dev" in entry
               if "node" in entry.get("engines", {})}  # fmt: skip
    assert len(engines) > 20
    assert {name: engine for name, engine in engines.items() if not runs_on(engine, oldest)} == {}


@pytest.mark.slow
def test_the_wheel_has_the_built_console(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    built = {f"geomill/console_files/{path.relative_to(FOLDER)}" for path in FOLDER.rglob("*") if path.is_file()}
    assert built <= names
