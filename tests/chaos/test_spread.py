"""The short run of roles on hosts of their own. `script/chaos --hosts --fault links` runs all faults of links."""

from __future__ import annotations

import pytest

from tests.chaos import hosts
from tests.chaos.faults import FAULTS
from tests.chaos.scenario import FaultOutcome, run_scenarios
from tests.chaos.spread import SpreadPlatform

pytestmark = pytest.mark.slow
SHORT = ["worker-deaf", "orchestrator-mute", "database-lossy", "serve-cut"]
"""A link that only sends, one that only receives, one that loses packets, and one that nobody else needs."""
LONGEST_SECONDS = 60.0


@pytest.fixture(scope="module")
def outcomes() -> dict[str, FaultOutcome]:
    if reason := hosts.why_not():
        pytest.skip(reason)
    return {outcome.fault: outcome for outcome in run_scenarios(SHORT, make_platform=SpreadPlatform)}


@pytest.mark.parametrize("name", SHORT)
def test_promises_hold_between_hosts(outcomes: dict[str, FaultOutcome], name: str) -> None:
    outcome = outcomes[name]
    assert not outcome.violations, outcome.log
    assert outcome.recovery is not None
    assert outcome.recovery < LONGEST_SECONDS
    assert outcome.jobs > 0


@pytest.mark.parametrize("name", ["worker-deaf", "orchestrator-mute"])
def test_others_take_over_what_is_on_a_host_that_is_cut_off(outcomes: dict[str, FaultOutcome], name: str) -> None:
    assert FAULTS[name].lasting
    assert outcomes[name].taken_over is not None
    assert outcomes[name].taken_over < outcomes[name].lasted


def test_visitors_notice_that_the_external_server_is_cut_off(outcomes: dict[str, FaultOutcome]) -> None:
    assert outcomes["serve-cut"].answers.get("no answer", 0) > 0
    assert outcomes["worker-deaf"].answers.get("no answer", 0) == 0
