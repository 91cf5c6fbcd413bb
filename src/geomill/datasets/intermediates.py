"""Paths of a job's intermediate files."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from geomill.sdk import HandlerError

DRAFT_PREFIX = "geomill-task-"
"""Prefix of temporary folders, by which those of killed tasks are recognised."""


def folder_of(job_id: str) -> str:
    """Return the folder of a job. The end of a job id is random; its beginning, the time, is shared by jobs of the same
    minute."""
    return job_id.replace("-", "")[:8] + "-" + job_id.replace("-", "")[-8:]


def mount() -> Path:
    """Return the local folder for copies of sources, which only this user may access.

    In a task process it lies in the process's own temporary folder. Elsewhere another user may have created it before,
    hence the check of its owner.
    """
    folder = Path(tempfile.gettempdir()) / f"geomill-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        raise HandlerError("the folder for copies of sources belongs to another user", code="scratch_unsafe")
    folder.chmod(0o700)
    return folder


def mounted(job_id: str, file_name: str) -> Path:
    return mount() / folder_of(job_id) / file_name.rpartition("/")[2]
