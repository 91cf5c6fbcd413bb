"""Where a job keeps what it needs only on its way."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from geomill.sdk import HandlerError

DRAFT_PREFIX = "geomill-task-"
"""Of temporary folders, so that those of tasks that were killed are known."""


def folder_of(job_id: str) -> str:
    """The end of a job id is its chance part; its beginning, the time, is shared by jobs of the same minute."""
    return job_id.replace("-", "")[:8] + "-" + job_id.replace("-", "")[-8:]


def mount() -> Path:
    """On this machine, for copies of sources. It is this user's alone: a task process has a folder of its own for
    temporary files, and elsewhere somebody else may have made it before."""
    folder = Path(tempfile.gettempdir()) / f"geomill-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        raise HandlerError("the folder for copies of sources belongs to somebody else", code="scratch_unsafe")
    folder.chmod(0o700)
    return folder


def mounted(job_id: str, file_name: str) -> Path:
    return mount() / folder_of(job_id) / file_name.rpartition("/")[2]
