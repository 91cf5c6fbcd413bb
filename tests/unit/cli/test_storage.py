"""`geomill storage`: what it takes and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from geomill.cli import context
from geomill.cli.main import app
from geomill.errors import ConflictError, GeomillError


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    Path("flood.tif").write_bytes(b"flood")
    yield
    context.data_option.set(None)


def run(*arguments: str) -> str:
    ended = CliRunner().invoke(app, ["--data", "data", "storage", *arguments])
    if ended.exception and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    assert ended.exit_code == 0, ended.output
    return ended.output


@pytest.mark.parametrize("target", ["bronze/rasters", "bronze/rasters/", "bronze/rasters/flood.tif"])
def test_the_file_s_name_is_taken_where_none_is_given(target: str) -> None:
    assert run("put", "flood.tif", target).startswith("bronze/rasters/flood.tif  5 bytes  sha256 ")


def test_nothing_is_replaced_unless_asked_for() -> None:
    run("put", "flood.tif", "bronze/rasters/a/")
    with pytest.raises(ConflictError, match=r"there is already an object 'bronze/rasters/a/flood.tif'.*--overwrite"):
        run("put", "flood.tif", "bronze/rasters/a/")
    Path("flood.tif").write_bytes(b"changed")
    with pytest.raises(ConflictError, match=r"there is already a file flood.tif.*--overwrite"):
        run("get", "bronze/rasters/a/flood.tif")
    run("put", "flood.tif", "bronze/rasters/a/", "--overwrite")
    Path("flood.tif").unlink()
    assert run("get", "bronze/rasters/a/flood.tif").startswith("flood.tif  7 bytes")
    run("get", "bronze/rasters/a/flood.tif", "data")
    assert Path("data/flood.tif").read_bytes() == b"changed"


def test_the_list_is_a_table() -> None:
    run("put", "flood.tif", "bronze/rasters/[bold]x")
    size, _, _, path = run("ls", "bronze/rasters").splitlines()[1].split()
    assert (size, path) == ("5", "[bold]x")
    assert run("ls", "bronze/others", "--json") == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("ls", "bronze"), "'bronze' names no container; write bronze/CONTAINER"),
        (("ls", "bronce/rasters"), "zone 'bronce' is not a zone; did you mean 'bronze'?"),
        (("ls", "bronze/Rasters"), "container_name 'Rasters' is not a container name"),
        (("get", "bronze/rasters/../x"), "path '../x' has the part '..'"),
        (("get", "bronze/rasters/x"), "there is no object 'bronze/rasters/x'"),
        (("put", "nothing.tif", "bronze/rasters"), "there is no file nothing.tif"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], expected: str) -> None:
    with pytest.raises(GeomillError) as caught:
        run(*arguments)
    assert str(caught.value).startswith(expected)
    assert caught.value.exit_code == 2
