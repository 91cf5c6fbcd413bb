from __future__ import annotations

from tests.acceptance.conftest import geomill as geomill
