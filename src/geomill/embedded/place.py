"""Which files lie where.

    DATA/postgres/            made by the caller
    ├── lock                  held while somebody starts, makes or stops the cluster
    ├── password              of the role geomill, readable to the caller only
    ├── port                  the TCP port of the last start
    ├── location              only for root, see below: the folder that holds what follows
    ├── socket.location       only when DATA is too long for a socket: the folder under /tmp that is used instead
    ├── geomill.conf          our settings, written at each start
    ├── postgresql.local.conf the user's settings, never touched
    ├── pgdata/               the cluster itself, owned by the server's account
    ├── log/
    └── socket/

The server of a root caller runs as another user, who must be able to walk to its folders. Root's default data folder
lies under /root, which is closed to others, and opening it is not ours to do. So when the account cannot enter
DATA/postgres at the first start, `geomill.conf` and all below it go to a new folder /var/lib/geomill/NAME-RANDOM, and
`location` points there. The name is random so that a deleted data folder means a fresh start, never an old cluster
without its password.

Root only ever writes into folders that root owns: in one that the account owns, a planted link would send the write
elsewhere.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from geomill.embedded.account import Account
from geomill.errors import EmbeddedError

SYSTEM_HOMES = Path("/var/lib/geomill")
# A socket's path has at most 107 bytes on Linux and 103 on macOS; "/.s.PGSQL.65535" is 15 of them.
LONGEST_SOCKET_FOLDER = 84
LOCK_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class DataPlace:
    control: Path
    home: Path

    @classmethod
    def of(cls, data: Path) -> DataPlace:
        control = data.expanduser().resolve() / "postgres"
        location = _read(control / "location")
        return cls(control, Path(location) if location else control)

    @property
    def pgdata(self) -> Path:
        return self.home / "pgdata"

    @property
    def log(self) -> Path:
        return self.home / "log"

    @property
    def config(self) -> Path:
        return self.home / "geomill.conf"

    def require_writable(self) -> None:
        """Asked before anything is written, so that a refused folder stays as it was."""
        folder = next(path for path in (self.control, *self.control.parents) if path.exists())
        if not folder.is_dir():
            raise EmbeddedError(f"{folder} is not a folder", remedy="choose a data folder with GEOMILL_DATA")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise EmbeddedError(
                f"the data folder {self.control.parent} cannot be written: {folder} is closed to this user",
                remedy="give yourself write permission, or choose another folder with GEOMILL_DATA",
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        _make_folder(self.control)
        descriptor = os.open(self.control / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(descriptor, self.control)
            yield
        finally:
            os.close(descriptor)

    def prepared(self, account: Account) -> DataPlace:
        """This place with its folders made, moved to where `account` can go if the cluster is yet to be made."""
        place = self
        if account.dropped and not account.can_enter(self.home):
            if self.pgdata.exists():
                raise EmbeddedError(
                    f"the user {account.name}, who owns the private database, cannot enter {self.home}",
                    remedy="give others the right to pass through its parent folders: chmod o+x",
                )
            place = self._relocated(account)
        account.make_folder(place.log)
        return place

    def _relocated(self, account: Account) -> DataPlace:
        home = SYSTEM_HOMES / f"{self.control.parent.name}-{secrets.token_hex(4)}"
        _make_folder(SYSTEM_HOMES)
        _make_folder(home)
        if not account.can_enter(home):
            raise EmbeddedError(
                f"the user {account.name}, to run the private database, can enter neither {self.home} nor {home}",
                remedy="choose a data folder with GEOMILL_DATA that others may pass through",
            )
        write(self.control / "location", str(home))
        return DataPlace(self.control, home)

    def password(self) -> str:
        """The password of the role geomill; empty when there is none yet."""
        return _read(self.control / "password")

    def make_password(self) -> str:
        if not self.password():
            write(self.control / "password", secrets.token_urlsafe(32), mode=0o600)
        return self.password()

    def port(self) -> int | None:
        text = _read(self.control / "port")
        return int(text) if text.isdecimal() else None

    def keep_port(self, port: int) -> None:
        if port != self.port():
            write(self.control / "port", str(port))

    def socket_folder(self, account: Account) -> Path:
        """Made if need be; one under /tmp may be cleaned away while the server is down, and is then made anew."""
        folder = self.home / "socket"
        if _is_short(folder):
            account.make_folder(folder)
            return folder
        kept = Path(_read(self.control / "socket.location") or "/nonexistent")
        if kept.is_dir() and not kept.is_symlink() and kept.stat().st_uid == account.uid:
            return kept
        made = _temporary_folder(account)
        write(self.control / "socket.location", str(made))
        return made


def write(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Whole or not at all: a reader never sees half a file, and a full disk leaves the old one."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123  a descriptor has no path
            file.write(text + "\n")
            os.fchmod(descriptor, mode)
            file.flush()
            os.fsync(descriptor)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _make_folder(folder: Path) -> None:
    """Root's folders let the account pass through, but not look around."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o711 if os.geteuid() == 0 else 0o700)


def _lock(descriptor: int, folder: Path) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                message = f"another process has been starting or stopping the private database in {folder} for too long"
                raise EmbeddedError(message, remedy="look for a geomill process that hangs, and end it") from error
        time.sleep(0.05)


def _is_short(folder: Path) -> bool:
    return len(os.fsencode(folder)) <= LONGEST_SOCKET_FOLDER


def _temporary_folder(account: Account) -> Path:
    for parent in (Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108  the folder in it is private
        made = Path(tempfile.mkdtemp(prefix="geomill-", dir=parent))
        account.own(made)
        if _is_short(made) and account.can_enter(made):
            return made
        made.rmdir()
    raise EmbeddedError("no folder is short enough for a socket", remedy="set TMPDIR to a short path")
