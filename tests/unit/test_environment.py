"""The locked packages can be installed together, in any order."""

from __future__ import annotations

import csv
from collections import defaultdict
from importlib.metadata import distributions

import pytest


@pytest.mark.slow
def test_no_two_distributions_write_one_file_with_different_content() -> None:
    """The order of a parallel install would decide which of the two files stays."""
    contents: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for distribution in distributions():
        for path, digest, *_ in csv.reader((distribution.read_text("RECORD") or "").splitlines()):
            contents[path][distribution.name] = digest
    assert len(contents) > 1000
    disputed = {path: sorted(owners) for path, owners in contents.items() if len(set(owners.values())) > 1}
    assert disputed == {}
