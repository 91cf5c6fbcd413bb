import subprocess

import pytest

from geomill.embedded.creation import check, locale_options, version_of
from geomill.errors import EmbeddedError


@pytest.fixture
def pgdata(tmp_path):
    (tmp_path / "global").mkdir()
    (tmp_path / "global" / "pg_control").touch()
    (tmp_path / "PG_VERSION").write_text("15\n")
    return tmp_path


def test_a_whole_cluster_tells_its_version(pgdata):
    assert version_of(pgdata) == 15


def test_a_folder_without_a_cluster_has_no_version(tmp_path):
    assert version_of(tmp_path) is None
    assert version_of(tmp_path / "absent") is None


@pytest.mark.parametrize("name", ["PG_VERSION", "global/pg_control"])
def test_a_cluster_that_lost_a_part_is_refused_rather_than_made_anew(pgdata, name):
    (pgdata / name).unlink()
    with pytest.raises(EmbeddedError, match="is damaged"):
        version_of(pgdata)


@pytest.mark.parametrize("text", ["", "9.6", "?"])
def test_a_version_that_cannot_be_read_is_refused(pgdata, text):
    (pgdata / "PG_VERSION").write_text(text)
    with pytest.raises(EmbeddedError, match="is damaged"):
        version_of(pgdata)


def test_the_order_of_texts_does_not_depend_on_the_c_library():
    assert locale_options(15, "linux") == ["--locale=C", "--lc-ctype=C.UTF-8"]
    assert "--locale-provider=builtin" in locale_options(17, "linux")
    assert "--locale=C" in locale_options(16, "darwin")


def test_a_failure_tells_the_last_lines():
    done = subprocess.CompletedProcess([], 1, stdout="", stderr="".join(f"line {n}\n" for n in range(100)))
    with pytest.raises(EmbeddedError) as raised:
        check(done, "initdb", log="FATAL: no space left\n")
    assert raised.value.message.startswith("initdb failed with exit code 1:")
    assert "line 99\nFATAL: no space left" in raised.value.message
    assert "line 50" not in raised.value.message


def test_a_success_says_nothing():
    check(subprocess.CompletedProcess([], 0, stdout="", stderr="a warning"), "initdb")
