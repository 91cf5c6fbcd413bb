"""Which processes count as dead. The test sets the time; nothing waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from geomill.domain.engine.instance import InstanceRole
from geomill.engine.maintenance import absences
from geomill.engine.maintenance.absences import Absences
from geomill.store.instances import Absent
from tests.unit.clock import ManualClock

BEATEN = datetime(2026, 11, 16, tzinfo=UTC)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    clock = ManualClock()
    monkeypatch.setattr(absences, "time", SimpleNamespace(monotonic=clock))
    return clock


def absent(*, beats: int = 0, silent: bool = False) -> Absent:
    return Absent("work-1", InstanceRole.WORKER, BEATEN + timedelta(seconds=beats), silent)


def test_a_lock_must_stay_free_for_a_while(clock: ManualClock) -> None:
    judge = Absences()
    assert judge.dead([absent()]) == []
    clock.now += 0.8
    assert judge.dead([absent()]) == []
    clock.now += 0.2
    assert judge.dead([absent()]) == [absent()]


def test_a_heartbeat_begins_the_count_again(clock: ManualClock) -> None:
    judge = Absences()
    judge.dead([absent()])
    clock.now += 1
    assert judge.dead([absent(beats=1)]) == []
    clock.now += 1
    assert judge.dead([absent(beats=1)]) == [absent(beats=1)]


def test_so_does_a_return(clock: ManualClock) -> None:
    judge = Absences()
    judge.dead([absent()])
    judge.dead([])
    clock.now += 1
    assert judge.dead([absent()]) == []


def test_silence_is_its_own_proof(clock: ManualClock) -> None:
    assert Absences().dead([absent(silent=True)]) == [absent(silent=True)]


def test_whose_own_heartbeat_was_late_judges_nobody_for_a_while(clock: ManualClock) -> None:
    judge = Absences(beat_seconds=5)
    assert judge.may_judge  # at its start it goes by what the server says
    judge.beaten()
    clock.now += 8
    assert judge.may_judge
    clock.now += 2
    assert not judge.may_judge
    judge.beaten()
    clock.now += 6
    judge.beaten()
    assert not judge.may_judge
    clock.now += 5
    assert judge.may_judge
