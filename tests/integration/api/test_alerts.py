"""The alerts in deploy/prometheus ask for figures that a gateway has, and the run-book explains each of them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import promql_parser
import psycopg
import pytest
import yaml
from httpx import AsyncClient
from prometheus_client.parser import text_string_to_metric_families

from geomill.api.readiness import ROLES, refusal
from geomill.store.attendance import Unserved
from geomill.store.metrics import Holder
from tests.integration.api.test_jobs import submit, until

ROOT = Path(__file__).parents[3]
RUN_BOOK = (ROOT / "docs/how-to/run-book.md").read_text(encoding="utf-8")
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
SELECTOR = re.compile(r"\b(geomill_\w+)(?:\{([^}]*)\})?")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
UNSHOWN = {
    "geomill_circuit_open",
    "geomill_dead_letters",
    "geomill_jobs_active",
    "geomill_queue_consumers",
    "geomill_queue_oldest_seconds",
    "geomill_space_free_bytes",
}
"""Figures without samples while all is well. Their names and labels are compared with the page and the code."""
FIGURES = (ROOT / "src/geomill/api/figures.py").read_text(encoding="utf-8")

rules = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])


@rules
def test_an_alert_is_a_valid_rule(rule: dict[str, Any]) -> None:
    promql_parser.parse(rule["expr"])
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert rule["annotations"]["summary"].endswith(".")
    assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))


@rules
def test_the_run_book_says_what_to_do(rule: dict[str, Any]) -> None:
    section = RUN_BOOK.split(f"\n### {rule['alert']}\n")
    assert len(section) == 2, f"the run-book has no section {rule['alert']}"
    text = re.split(r"\n##", section[1])[0]
    assert [word for word in ("**Means**", "**Look at**", "**Do**") if word not in text] == []


def test_the_run_book_has_no_alert_that_does_not_exist() -> None:
    assert set(re.findall(r"^### (\w+)$", RUN_BOOK, re.MULTILINE)) == {rule["alert"] for rule in RULES}


def test_every_reason_is_in_the_run_book() -> None:
    reasons = [
        *(f"no {role} is alive" for role in ROLES),
        refusal(psycopg.OperationalError()),
        Unserved("q", datetime.now(UTC)).reason,
        Unserved("q", datetime.now(UTC), "w").reason,
        *(
            Holder(kind=kind, name="x", seconds=700.0, transactions=0).told()
            for kind in ("session", "prepared", "slot")
        ),
    ]
    patterns = [
        re.escape(reason).replace("…", ".+")
        for cell in re.findall(r"^\| (`.*?) \|", RUN_BOOK, re.MULTILINE)
        for reason in re.findall(r"`([^`]+)`", cell)
    ]
    missing = [reason for reason in reasons if not any(re.match(pattern, reason) for pattern in patterns)]
    assert missing == []


async def test_an_alert_asks_for_figures_and_labels_that_exist(busy: AsyncClient) -> None:
    accepted = await submit(busy)
    await until(busy, accepted["job_id"], "completed")
    samples: dict[str, set[str]] = {}
    for family in text_string_to_metric_families((await busy.get("/metrics")).text):
        for sample in family.samples:
            samples.setdefault(sample.name, set()).update(sample.labels)
    page = (ROOT / "docs/how-to/monitor.md").read_text(encoding="utf-8")
    documented = {
        name: set(labels.split(",")) - {""} for name, labels in re.findall(r"`(geomill_\w+)(?:\{([\w,]*)\})?`", page)
    }
    for rule in RULES:
        for name, chosen in SELECTOR.findall(rule["expr"]):
            labels = samples.get(name)
            if labels is None and name in UNSHOWN and f'"{name}"' in FIGURES:
                labels = documented[name]
            assert labels is not None, f"{rule['alert']} asks for {name}, which no gateway has"
            assert set(LABEL.findall(chosen)) <= labels, f"{rule['alert']}: {name} has the labels {labels}"
