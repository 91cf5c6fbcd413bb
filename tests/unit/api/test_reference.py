"""Every route and every figure is in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from geomill.api import create_app, figures
from geomill.settings import AccessSettings, QueueSettings
from geomill.workflows.registry import WorkflowRegistry

DOCS = Path(__file__).parents[3] / "docs"


def test_every_route_is_in_the_reference() -> None:
    described = create_app("postgresql:///nowhere", WorkflowRegistry([]), QueueSettings(), AccessSettings()).openapi()
    text = (DOCS / "reference" / "http-api.md").read_text(encoding="utf-8")
    described_routes = [
        f"{method.upper()} {path}" for path, methods in described["paths"].items() for method in methods
    ]
    assert len(described_routes) >= 18
    assert [route for route in described_routes if f"`{route}" not in text] == []
    known_routes = set(described_routes)
    named = re.findall(r"`((?:GET|POST) /[^`?]*)", text)
    assert [route for route in named if route not in known_routes] == []


def test_every_figure_is_in_the_guide() -> None:
    source = Path(figures.__file__).read_text(encoding="utf-8")
    names = set(re.findall(r'"(geomill_\w+)"', source)) - {"geomill_info"}
    names |= {f"geomill_{name}" for name in (*figures._COUNTERS, *figures._HISTOGRAMS)}
    text = (DOCS / "how-to" / "monitor.md").read_text(encoding="utf-8")
    assert len(names) >= 14
    assert [name for name in sorted(names) if name not in text] == []
