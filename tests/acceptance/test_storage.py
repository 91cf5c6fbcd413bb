"""`geomill storage`, and what the doctor and `up` do for the zones."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.acceptance.conftest import Geomill

CONTENT = b"0123456789" * 1_000_000


@pytest.mark.slow
def test_a_file_goes_in_is_listed_and_comes_out(geomill: Geomill, tmp_path: Path) -> None:
    data, file, back = str(tmp_path / "data"), tmp_path / "flood.tif", tmp_path / "back.tif"
    file.write_bytes(CONTENT)
    digest = hashlib.sha256(CONTENT).hexdigest()

    ended = geomill("--data", data, "storage", "put", str(file), "bronze/rasters/2024/")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"bronze/rasters/2024/flood.tif  10,000,000 bytes  sha256 {digest}\n"
    assert (tmp_path / "data/bronze/rasters/2024/flood.tif").read_bytes() == CONTENT

    (listed,) = geomill("--data", data, "storage", "ls", "bronze/rasters", "--json").json
    assert (listed["zone"], listed["container"], listed["path"]) == ("bronze", "rasters", "2024/flood.tif")
    assert listed["size"] == len(CONTENT)

    got = geomill("--data", data, "storage", "get", "bronze/rasters/2024/flood.tif", str(back), "--json")
    assert got.json["sha256"] == digest
    assert back.read_bytes() == CONTENT


@pytest.mark.slow
def test_the_doctor_looks_at_each_zone(geomill: Geomill, database: str, tmp_path: Path) -> None:
    (tmp_path / "silver").mkdir()
    ended = geomill(
        "--data",
        str(tmp_path),
        "doctor",
        "--json",
        GEOMILL_DATABASE_URL=database,
        GEOMILL_BRONZE=str(tmp_path.with_name("not-mounted")),
        GEOMILL_EXTERNAL="s3://geo-data",
        AWS_ENDPOINT_URL="http://127.0.0.1:9",
        AWS_ACCESS_KEY_ID="id",
        AWS_SECRET_ACCESS_KEY="s3cret",
    )
    assert ended.code == 1
    findings = {finding["subject"]: finding for finding in ended.json}
    assert (findings["bronze"]["level"], findings["bronze"]["remedy"]) == ("fail", "mount it or create it")
    assert findings["silver"]["level"] == "ok"
    assert findings["silver"]["message"].startswith(f"{tmp_path / 'silver'}, written in ")
    assert findings["external"]["level"] == "fail"
    assert "s3://geo-data" in findings["external"]["message"]
    assert "s3cret" not in ended.out + ended.err
    assert [path for path in (tmp_path / "silver").rglob("*") if path.is_file()] == []
    assert not (tmp_path / "external").exists()


@pytest.mark.slow
def test_the_doctor_makes_no_folders(geomill: Geomill, database: str, tmp_path: Path) -> None:
    ended = geomill("--data", str(tmp_path / "data"), "doctor", "--json", GEOMILL_DATABASE_URL=database)
    findings = {finding["subject"]: finding for finding in ended.json}
    assert "created on first use" in findings["bronze"]["message"]
    assert not (tmp_path / "data").exists()
