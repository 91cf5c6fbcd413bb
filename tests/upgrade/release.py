"""The previous release in a folder of its own, with its own environment, so that its roles can run beside ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.chaos.release import ROOT, Release

NAMED = Path(__file__).with_name("previous-release")
"""The commit that counts as the previous release while there is no tag."""
FOLDER = ROOT / ".local/releases"
COMPLETE = "complete"


class NoReleaseError(Exception):
    """The previous release cannot be had here."""


def previous_commit(name: str | None = None) -> str:
    """Return the commit of that name, of the last tag before this commit, or else of the file `previous-release`."""
    name = name or _git("describe", "--tags", "--abbrev=0", "HEAD^") or NAMED.read_text(encoding="ascii").strip()
    commit = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if not commit:
        raise NoReleaseError(f"this clone has no commit '{name}': fetch the whole history, or name another one")
    return commit


def previous_release(name: str | None = None) -> Release:
    """Return the release, ready to run. Its folder stays for the next run; those of other commits are deleted."""
    commit = previous_commit(name)
    root = FOLDER / commit[:12]
    if not (root / COMPLETE).exists():
        shutil.rmtree(FOLDER, ignore_errors=True)
        root.mkdir(parents=True)
        _check_out(commit, root)
        _install(root)
        (root / COMPLETE).touch()
    return Release(root)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _check_out(commit: str, root: Path) -> None:
    """Copy the files of a commit. A git worktree would stay in the clone's list if this process were killed."""
    with subprocess.Popen(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "-x", "-C", str(root)], stdin=archive.stdout, check=True)
    if archive.returncode:
        raise NoReleaseError(f"git could not read the files of {commit}")


def _install(root: Path) -> None:
    own = ROOT / ".local/uv/bin/uv"
    uv = str(own) if own.exists() else shutil.which("uv")
    if uv is None:
        raise NoReleaseError("uv is missing: run script/setup")
    environ = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    python = ["--quiet", "--python", str(root / ".venv/bin/python")]
    for words in (
        ["venv", "--quiet", "--python", os.path.realpath(sys.executable), ".venv"],
        ["pip", "sync", *python, "--require-hashes", "requirements.lock"],
        ["pip", "install", *python, "--no-deps", "--no-build-isolation", "-e", "."],
    ):
        subprocess.run([uv, *words], cwd=root, env=environ, check=True)
