"""Commands and gateways find all handlers at their start: that must not load what only the work needs."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("numpy", "osgeo", "psycopg", "pyarrow", "pyogrio", "pyproj", "rasterio", "shapely")


def test_handlers_are_found_without_heavy_libraries() -> None:
    code = (
        "import sys; from geomill.sdk.registry import load_handlers; found = load_handlers();"
        f"print(len(found), [name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, _, loaded = done.stdout.strip().partition(" ")
    assert int(count) > 30
    assert loaded == "[]"
