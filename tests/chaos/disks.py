"""Small disks that can be filled: files with a file system, mounted where root may. Elsewhere such faults are left
out."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

FILLER = "filler"
SMALLEST = 4096


def why_not() -> str | None:
    """Return what this machine lacks for the test, or None."""
    if os.geteuid() != 0:
        return "mounting a disk needs root"
    if not shutil.which("mkfs.ext4"):
        return "mkfs.ext4 not installed"
    with tempfile.TemporaryDirectory() as folder:
        try:
            with Disk(Path(folder) / "image", Path(folder) / "disk", 8):
                return None
        except subprocess.CalledProcessError as error:
            return f"the system refused: {error.stderr.decode(errors='replace').strip()}"


@dataclass
class Disk:
    image: Path
    folder: Path
    megabytes: int

    def __enter__(self) -> Disk:
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.image.open("wb") as file:
            file.truncate(self.megabytes * 1024 * 1024)  # sparse: only what is used takes room
        options = "lazy_itable_init=1,lazy_journal_init=1"
        _run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", options, str(self.image))
        _run("mount", "-o", "loop", str(self.image), str(self.folder))
        (self.folder / "lost+found").rmdir()
        self.folder.chmod(0o755)
        return self

    def __exit__(self, *_: object) -> None:
        _run("umount", "--lazy", str(self.folder))
        self.image.unlink(missing_ok=True)

    def fill(self) -> None:
        """Fill the disk to the last block."""
        size = self.megabytes * 1024 * 1024
        with (self.folder / FILLER).open("ab") as file:
            while size >= SMALLEST:
                try:
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), size)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    size //= 2

    def free(self) -> None:
        (self.folder / FILLER).unlink(missing_ok=True)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
