"""CSV files as people write them: their encodings, separators, decimal commas, dates and coordinate columns."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomill.datasets.refusals import DataRefused
from geomill.vector.csv_profile import iso_date, point_number, profile
from geomill.vector.csv_source import csv_source
from geomill.vector.facts import DateOrder, Reading


def read(tmp_path: Path, data: bytes | str, **reading: Any) -> tuple[Any, str]:
    """Return the source and the text that GDAL gets."""
    path = tmp_path / "a.csv"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    source = csv_source(path, "a.csv", Reading(**reading), tmp_path / "copy.csv")
    return source, source.path.read_text(encoding="utf-8-sig")


def codes(source: Any) -> list[str]:
    return [remark.code for remark in source.remarks]


def test_a_plain_file_is_read_in_place(tmp_path: Path) -> None:
    source, _ = read(tmp_path, "lon,lat,day\n1.5,2,2020-12-31\n")
    assert (source.path.name, source.crs, source.remarks) == ("a.csv", "EPSG:4326", [])
    assert source.options["SEPARATOR"] == "COMMA"


@pytest.mark.parametrize(("mark", "name"), [(";", "SEMICOLON"), ("\t", "TAB"), ("|", "PIPE"), (",", "COMMA")])
def test_separators(tmp_path: Path, mark: str, name: str) -> None:
    source, _ = read(tmp_path, mark.join(("lon", "lat", '"a,b;c"')) + "\n" + mark.join(("1", "2", "3")) + "\n")
    assert source.options["SEPARATOR"] == name


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("longitud", "latitud"),
        ("Länge", "Breite"),
        ("LAENGE", "BREITE"),
        ("Longitudine", "Latitudine"),
        ("decimalLongitude", "decimalLatitude"),
    ],
)
def test_names_of_coordinates(tmp_path: Path, x: str, y: str) -> None:
    source, _ = read(tmp_path, f"name,{y},{x}\na,50,8\n")
    assert (source.options["X_POSSIBLE_NAMES"], source.options["Y_POSSIBLE_NAMES"]) == (x, y)
    assert source.crs == "EPSG:4326"


def test_decimal_commas_become_points(tmp_path: Path) -> None:
    source, text = read(tmp_path, 'x;y;height;code\n8,5;47,25;"1.234,5";1,2,3\n-9;46,5;;4,5\n')
    assert text == "x;y;height;code\n8.5;47.25;1234.5;1,2,3\n-9;46.5;;4,5\n"
    assert codes(source) == ["decimal_commas", "crs_assumed"]


def test_a_late_value_that_is_no_number_keeps_its_column_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geomill.vector.csv_profile.MOST_ROWS", 5)
    rows = "".join(f"1,5;2,5;{number},5;01.02.2020\n" for number in range(20))
    source, text = read(tmp_path, f"lon;lat;a;d\n{rows}1,5;2,5;about 7;unknown\n")
    assert text.splitlines()[1] == "1.5;2.5;0,5;01.02.2020"
    assert text.splitlines()[-1] == "1.5;2.5;about 7;unknown"
    assert codes(source) == ["decimal_commas"]
    assert "'a'" not in source.remarks[0].message


def test_dates_whose_order_the_values_show(tmp_path: Path) -> None:
    _, text = read(tmp_path, "lon,lat,d,m,t\n1,2,31/12/2020,12/31/2020,1.2.2020 7:30\n1,2,01/02/2020,01/02/2020,\n")
    assert text.splitlines()[1:] == [
        "1,2,2020-12-31,2020-12-31,2020-02-01T07:30",
        "1,2,2020-02-01,2020-01-02,",
    ]


def test_dates_whose_order_is_unclear_stay_text(tmp_path: Path) -> None:
    data = "lon,lat,d\n1,2,01/02/2020\n1,2,03/04/2020\n"
    source, text = read(tmp_path, data)
    assert (codes(source), text) == (["unclear_dates"], data)
    assert source.remarks[0].remedies == {"date_order": ["dmy", "mdy"]}
    assert read(tmp_path, data, date_order="mdy")[1].splitlines()[1] == "1,2,2020-01-02"


def test_the_header_is_decoded_as_the_values_are(tmp_path: Path) -> None:
    source, text = read(tmp_path, "Größe,lon,lat\nKöln,7,51\n".encode("cp1252"))
    assert text == "Größe,lon,lat\nKöln,7,51\n"
    assert (codes(source), source.text.encoding, source.text.known_from) == (
        ["encoding_detected"],
        "cp1252",
        "detected",
    )


def test_a_file_of_two_encodings_loses_nothing(tmp_path: Path) -> None:
    _, text = read(tmp_path, "Größe,lon,lat\n".encode("cp1252") + "Łódź,19,51\n".encode())
    assert text == "Größe,lon,lat\nŁódź,19,51\n"


def test_the_option_decides_the_encoding(tmp_path: Path) -> None:
    data = "Ціна,lon,lat\nЩит,35,48\n".encode("cp1251")
    source, text = read(tmp_path, data, encoding="windows-1251")
    assert text.startswith("Ціна")
    assert (source.text.encoding, source.text.known_from, codes(source)) == ("cp1251", "option", [])
    for encoding in ("utf-8", "klingon", "hex", "rot13", "\0"):
        with pytest.raises(DataRefused) as refusal:
            read(tmp_path, data, encoding=encoding)
        assert refusal.value.error_code == "bad_encoding"
        assert "encoding" in refusal.value.remedies
        assert "damaged" not in refusal.value.message


def test_a_wrong_byte_far_inside_is_refused_as_an_encoding(tmp_path: Path) -> None:
    data = b"name,lon,lat\n" + b"a,1,2\n" * 300_000 + b"\x81,1,2\n"
    with pytest.raises(DataRefused) as refusal:
        read(tmp_path, data, encoding="cp1252")
    assert refusal.value.error_code == "bad_encoding"


def test_degrees_are_assumed_only_if_all_values_fit(tmp_path: Path) -> None:
    assert read(tmp_path, "x,y\n8,47\n")[0].crs == "EPSG:4326"
    source, _ = read(tmp_path, "x,y\n8,47\n500000,47\n")
    assert (source.crs, codes(source)) == (None, [])
    assert read(tmp_path, "x,y\nnan,inf\n")[0].crs is None


def test_swapped_columns_are_exchanged_and_told(tmp_path: Path) -> None:
    data = "lat,lon\n-120.5,45\n-80,46\n"
    source, _ = read(tmp_path, data)
    assert (source.options["X_POSSIBLE_NAMES"], source.options["Y_POSSIBLE_NAMES"]) == ("lat", "lon")
    assert codes(source) == ["swapped_coordinates"]
    named, _ = read(tmp_path, data, x_column="lon", y_column="lat")
    assert (named.options["X_POSSIBLE_NAMES"], codes(named)) == ("lon", [])


def test_one_wrong_latitude_swaps_nothing(tmp_path: Path) -> None:
    source, _ = read(tmp_path, "lat,lon\n" + "45,8\n" * 20 + "120,8\n")
    assert (source.options["X_POSSIBLE_NAMES"], codes(source)) == ("lon", [])


def test_the_original_is_never_written_through_a_link(tmp_path: Path) -> None:
    original = tmp_path / "original.csv"
    original.write_bytes(b"lon;lat\n1,5;2,5\n")
    link, target = tmp_path / "a.csv", tmp_path / "copy.csv"
    link.symlink_to(original)
    target.symlink_to(original)
    source = csv_source(link, "a.csv", Reading(), target)
    assert original.read_bytes() == b"lon;lat\n1,5;2,5\n"
    assert source.path.read_text() == "lon;lat\n1.5;2.5\n"


@given(st.integers(-(10**9), 10**9), st.integers(0, 999))
def test_numbers_with_a_comma(whole: int, part: int) -> None:
    assert point_number(f"{whole},{part:03}") == f"{whole}.{part:03}"
    grouped = f"{whole:,}".replace(",", ".") + f",{part:03}"
    assert float(point_number(grouped) or "nan") == float(f"{whole}.{part:03}")


@given(st.dates())
def test_every_date_is_read_in_both_orders(day: Any) -> None:
    year = f"{day.year:04}"
    assert iso_date(f"{day.day}.{day.month}.{year}", DateOrder.DMY) == day.isoformat()
    assert iso_date(f"{day.month:02}/{day.day:02}/{year}", DateOrder.MDY) == day.isoformat()


@given(st.binary(max_size=300))
def test_any_bytes_have_a_profile(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_bytes(data)
        sample = profile(path, "a.csv", None, None)
        assert all(number < len(sample.columns) for number in (*sample.decimal_commas, *sample.dates))
