"""Unpacks untrusted ZIP files: checks all members first, and never unpacks more bytes than they declare."""

from __future__ import annotations

import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from geomill.datasets.refusals import refused
from geomill.domain.access.confidential import without_places
from geomill.sdk import HandlerError

MOST_MEMBERS = 1_000
LARGEST = 64 * 1024**3
BOMB_RATIO = 200
BOMB_BYTES = 1024**3
"""Unpacked sizes up to this are allowed at any compression ratio."""
SHAPEFILE_PARTS = (".shp", ".shx", ".dbf", ".prj", ".cpg")
DATA = (".gpkg", ".geojson", ".json", ".geojsonl", ".ndjson", ".fgb", ".parquet", ".kml", ".csv", ".tsv")
_ARCHIVES = (".zip", ".kmz", ".7z", ".rar", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst")
_DATABASES = (".gdb", ".gdbtable")
_ENCRYPTED = 0x1
_COPIED = 1 << 20
_DAMAGE = (RuntimeError, OSError, ValueError, zlib.error)


def unpack(archive: Path, name: str, folder: Path, layer: str | None) -> Path:
    """Unpack the dataset into the folder and return its main file, such as the .shp. `name` is the submitter's name."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = [member for member in opened.infolist() if not member.is_dir()]
            _check(members, name, archive.stat().st_size)
            dataset = _dataset_members(members, name, layer)
            return _extract(opened, dataset, folder, name)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, zipfile.LargeZipFile) as error:
        raise refused(
            "unreadable", f"'{name}' is a damaged or unknown ZIP file: {without_places(str(error))}"
        ) from error


def files_beside_data(
    archive: Path, name: str, layer: str | None, suffix: str
) -> Iterator[tuple[PurePosixPath, int, Callable[[], bytes]]]:
    """Yield path, size and a reader of the members that are called as the dataset, with this suffix. The reader raises
    a refusal if the member is damaged."""
    with zipfile.ZipFile(archive) as opened:
        members = [member for member in opened.infolist() if not member.is_dir()]
        main = _path(_dataset_members(members, name, layer)[0])
        for member in members:
            path = _path(member)
            if path.suffix.lower() == suffix and path.with_suffix("") == main.with_suffix("") and not _hidden(member):
                yield path, member.file_size, partial(_read, opened, member, name)


def unpacked_bytes(archive: Path) -> int:
    """Return the size that the members declare; 0 if the file is no readable archive."""
    try:
        with zipfile.ZipFile(archive) as opened:
            return sum(member.file_size for member in opened.infolist())
    except (zipfile.BadZipFile, NotImplementedError, EOFError):
        return 0


def _check(members: Sequence[zipfile.ZipInfo], name: str, packed: int) -> None:
    if len(members) > MOST_MEMBERS:
        raise refused("unsafe_archive", f"'{name}' holds {len(members):,} files; the maximum is {MOST_MEMBERS:,}")
    for member in members:
        if problem := _problem(member):
            raise refused("unsafe_archive", f"'{name}' is not unpacked: '{member.filename[:120]}' {problem}")
    unpacked = sum(member.file_size for member in members)
    if unpacked > LARGEST or (unpacked > BOMB_BYTES and unpacked > BOMB_RATIO * packed):
        raise refused(
            "unsafe_archive",
            f"'{name}' has {packed:,} bytes and would unpack to {unpacked:,}, so it is not unpacked: "
            "if it is genuine, submit the data without the archive",
        )


def _problem(member: zipfile.ZipInfo) -> str:
    path, mode = PurePosixPath(member.filename.replace("\\", "/")), member.external_attr >> 16
    if path.is_absolute() or ".." in path.parts or (path.parts and path.parts[0].endswith(":")):
        return "leads out of the archive"
    if stat.S_ISLNK(mode) or (mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG)):
        return "is not a plain file"
    if member.flag_bits & _ENCRYPTED:
        return "has a password: pack it without one"
    if path.suffix.lower() in _ARCHIVES:
        return "is an archive itself: pack the data directly"
    return ""


def _nothing_in(paths: Iterable[PurePosixPath], name: str) -> str:
    if any(part.suffix.lower() in _DATABASES for path in paths for part in (path, *path.parents)):
        return (
            f"'{name}' is a File Geodatabase, which is not read: convert it with "
            "'ogr2ogr -f GPKG data.gpkg FOLDER.gdb' and submit the GeoPackage"
        )
    return (
        f"'{name}' is a ZIP file without a Shapefile or other vector data in it: pack {', '.join(('.shp', *DATA))}, "
        "or convert your data with 'ogr2ogr -f GPKG data.gpkg FILE'"
    )


def _dataset_members(members: Sequence[zipfile.ZipInfo], name: str, layer: str | None) -> list[zipfile.ZipInfo]:
    """Return the members of the one dataset, the one to open first. Files that the packer's system added do not
    count."""
    by_path = {_path(member): member for member in members if not _hidden(member)}
    mains = [path for path in by_path if path.suffix.lower() == ".shp"] or [
        path for path in by_path if path.suffix.lower() in DATA
    ]
    if len(mains) > 1:
        by_label = _by_label(mains)
        if layer not in by_label:
            labels = sorted(by_label)
            message = f"'{name}' holds {len(mains)} datasets: give 'layer' as one of {', '.join(labels[:20])}"
            raise refused("choose_layer", message, layer=labels)
        mains = [by_label[layer]]
    if not mains:
        raise refused("unsupported_format", _nothing_in(by_path, name))
    main = mains[0]
    if main.suffix.lower() != ".shp":
        return [by_path[main]]
    parts = [path for path in by_path if path.with_suffix("") == main.with_suffix("") and path != main]
    missing = {".shx", ".dbf"} - {path.suffix.lower() for path in parts}
    if missing:
        raise refused("incomplete", f"the Shapefile '{main}' in '{name}' lacks its {' and '.join(sorted(missing))}")
    return [by_path[main], *(by_path[path] for path in parts if path.suffix.lower() in SHAPEFILE_PARTS)]


def _by_label(paths: Sequence[PurePosixPath]) -> dict[str, PurePosixPath]:
    """Return paths by the names that a submitter gives: the shortest that no other dataset has."""
    shorter: tuple[Callable[[PurePosixPath], str], ...] = (
        lambda path: path.stem,
        lambda path: str(path.with_suffix("")),
    )
    by_label: dict[str, PurePosixPath] = {}
    for path in paths:
        labels = (label(path) for label in shorter if sum(label(path) == label(other) for other in paths) == 1)
        by_label[next(labels, str(path))] = path
    return by_label


def _path(member: zipfile.ZipInfo) -> PurePosixPath:
    return PurePosixPath(member.filename.replace("\\", "/"))


def _hidden(member: zipfile.ZipInfo) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in _path(member).parts)


def _extract(opened: zipfile.ZipFile, dataset: Sequence[zipfile.ZipInfo], folder: Path, name: str) -> Path:
    """Unpack the members under fixed names, so that no name in the archive becomes a path."""
    folder.mkdir(parents=True, exist_ok=True)
    space = shutil.disk_usage(folder).free
    needed = sum(member.file_size for member in dataset)
    if needed > space:
        raise HandlerError(f"'{name}' needs {needed:,} bytes on this machine, which has {space:,}", code="disk_full")
    targets = [folder / f"data{_path(member).suffix.lower()}" for member in dataset]
    for member, target in zip(dataset, targets, strict=True):
        _copy(opened, member, target, name)
    return targets[0]


def _read(opened: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> bytes:
    """Return a member. zipfile returns no more than the declared size."""
    try:
        with opened.open(member) as source:
            return source.read(member.file_size)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, *_DAMAGE) as error:
        raise _not_unpacked(member, name, error) from error


def _copy(opened: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, name: str) -> None:
    """Copy a member. zipfile returns no more than the declared size and compares the checksum."""
    try:
        with opened.open(member) as source, target.open("wb") as file:
            shutil.copyfileobj(source, file, _COPIED)
    except _DAMAGE as error:
        raise _not_unpacked(member, name, error) from error


def _not_unpacked(member: zipfile.ZipInfo, name: str, error: Exception) -> HandlerError:
    reason = without_places(str(error))
    return refused("unreadable", f"'{member.filename}' in '{name}' cannot be unpacked: {reason}")
