"""Names of objects: what passes is safe and means the same everywhere."""

from __future__ import annotations

import os.path
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomill.domain.objectname import ObjectName, Zone, check_container, check_path, check_zone
from geomill.errors import InvalidName


@pytest.mark.parametrize(
    "path",
    ["a", "a/b.tif", "2024/05/x y.tif", "é/ü.tif", "日本/地図.tif", "a#b", "a%20b", "a?b", ".hidden/x", "..a", "a..b"],
)
def test_paths_that_are_taken(path: str) -> None:
    assert check_path(path) == path


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "is empty"),
        ("/etc/passwd", "is absolute"),
        ("/vsicurl/http://x/y", "is absolute"),
        ("../x", "has the part '..'"),
        ("a/../../x", "has the part '..'"),
        ("a/./b", "has the part '.'"),
        ("a//b", "has an empty part"),
        ("a/", "has an empty part"),
        ("vsicurl/http://x", "has an empty part"),
        ("a\\..\\b", "has a backslash"),
        ("a\x00b", "not text"),
        ("a\nb", "not text"),
        ("a\x7fb", "not text"),
        ("a\u2028b", "not text"),
        ("a\udc80b", "not text"),
        ("a\uffffb", "not text"),
        ("a /b", "remove spaces at its beginning and end"),
        ("a\u00a0/b", "remove spaces at its beginning and end"),
        ("a./b", "a dot at its end"),
        ("a.tif#1", "remove '#' and digits from its end"),
        ("é" * 121, "longer than 240"),
        ("/".join(["abcdefghi"] * 91), "longer than 900"),
    ],
)
def test_paths_that_are_refused(path: str, reason: str) -> None:
    with pytest.raises(InvalidName) as caught:
        check_path(path, "file_name")
    assert str(caught.value).startswith("file_name '")
    assert reason in str(caught.value)
    assert caught.value.remedy
    assert caught.value.code == "invalid_name"
    str(caught.value).encode()  # it can be printed


@pytest.mark.parametrize("name", ["rmhazuregeobronze", "silver-cogs", "abc", "a-1", "0" * 63])
def test_containers_that_are_taken(name: str) -> None:
    assert check_container(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "ab", "a" * 64, "Abc", "a_b", "-abc", "abc-", "a--b", "a.b", "../x", "a/b", "abc\n", ".uploads", "$web"],
)
def test_containers_that_are_refused(name: str) -> None:
    with pytest.raises(InvalidName, match=r"container_name .* is not a container name.*3 to 63"):
        check_container(name)


def test_a_zone_that_is_not_there_names_the_nearest() -> None:
    assert check_zone("silver") is Zone.SILVER
    with pytest.raises(InvalidName, match="zone 'silvr' is not a zone; did you mean 'silver'"):
        check_zone("silvr")


paths = st.text(st.characters() | st.sampled_from("/.#\\ a1"), max_size=60)


@given(paths)
def test_what_passes_stays_below_its_folder(path: str) -> None:
    try:
        check_path(path)
    except InvalidName:
        return
    assert os.path.normpath(f"/zone/container/{path}") == f"/zone/container/{path}"
    assert PurePosixPath("/zone", path).is_relative_to("/zone")
    assert path.encode().decode() == path
    assert not path.startswith("/")


@given(paths, paths)
def test_what_passes_has_one_spelling(first: str, second: str) -> None:
    """Two names that differ are two places."""
    try:
        check_path(first), check_path(second)
    except InvalidName:
        return
    assert (os.path.normpath(first) == os.path.normpath(second)) == (first == second)


@given(st.sampled_from(Zone), st.from_regex(r"[a-z0-9](-?[a-z0-9]){2,30}", fullmatch=True), paths)
def test_a_name_survives_its_text(zone: Zone, container: str, path: str) -> None:
    try:
        name = ObjectName(zone, container, path)
    except InvalidName:
        return
    assert ObjectName.parse(str(name)) == name
    assert name.path.endswith(name.name)


@pytest.mark.parametrize("text", ["", "bronze", "bronze/abc", "bronze/abc/", "gold/abc/x", "bronze/../x"])
def test_a_text_that_is_no_name(text: str) -> None:
    with pytest.raises(InvalidName):
        ObjectName.parse(text)


def test_a_zone_may_be_given_as_text() -> None:
    assert ObjectName("bronze", "abc", "x").zone is Zone.BRONZE  # type: ignore[arg-type]
