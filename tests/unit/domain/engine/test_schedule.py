"""When schedules are due, and what to do about it. All of it pure: the tests say what time it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geomill.domain.engine.schedule import CatchUp, Schedule, Timing, check_timing, firing_id, firings, time_zone
from geomill.errors import InputError

ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)
NEW_YORK = "America/New_York"
CRONS = (
    "* * * * *",
    "*/7 * * * *",
    "30 2 * * *",
    "0 1-3 * * *",
    "15 1,2 * * SUN",
    "0 0 1 * *",
    "45 * * * *",
    "5 4 29 2 *",
)
ZONES = ("UTC", NEW_YORK, "Europe/Zurich", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia")


def cron(expression: str, zone: str = "UTC") -> Timing:
    return Timing(expression, None, zone, ANCHOR)


def every(seconds: int) -> Timing:
    return Timing(None, seconds, "UTC", ANCHOR)


def local(text: str, zone: str = NEW_YORK, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC)


moments = st.integers(0, 5 * 365 * 86_400).map(
    lambda seconds: datetime(2023, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)
around_changes = st.sampled_from(
    [local("2026-03-08T00:00"), local("2026-11-01T00:00"), local("2026-04-05T00:00", "Australia/Lord_Howe")]
).flatmap(lambda day: st.integers(0, 8 * 3600).map(lambda seconds: day + timedelta(seconds=seconds)))
timings = st.one_of(st.builds(cron, st.sampled_from(CRONS), st.sampled_from(ZONES)), st.integers(1, 200_000).map(every))


@given(timings, st.one_of(moments, around_changes))
def test_the_next_due_time_is_later_and_the_first(timing: Timing, moment: datetime) -> None:
    due = timing.after(moment)
    assert due is not None
    assert due > moment
    assert timing.after(due - timedelta(microseconds=1)) == due
    halfway = moment + (due - moment) / 2
    assert timing.after(halfway) == due or halfway == due


@given(timings, st.one_of(moments, around_changes), st.integers(1, 40))
def test_due_times_rise_and_none_is_left_out(timing: Timing, start: datetime, count: int) -> None:
    due = [start]
    for _ in range(count):
        following = timing.after(due[-1])
        assert following is not None
        due.append(following)
    assert all(earlier < later for earlier, later in pairwise(due))
    assert list(timing.between(due[1], due[-1])) == due[1:]


@settings(max_examples=50)
@given(timings, st.one_of(moments, around_changes), st.integers(0, 300), st.integers(0, 3600))
def test_the_latest_is_the_last_of_all(timing: Timing, start: datetime, count: int, rest: int) -> None:
    first = timing.after(start)
    assert first is not None
    now = first + timedelta(seconds=count * 61 + rest)
    assert timing.latest(first, now) == list(timing.between(first, now))[-1]


def test_the_latest_of_years_is_found_at_once() -> None:
    now = datetime(2036, 1, 1, 0, 0, 30, tzinfo=UTC)
    assert cron("* * * * *").latest(ANCHOR, now) == now.replace(second=0)
    assert cron("0 0 29 2 *").latest(datetime(2028, 2, 29, tzinfo=UTC), now) == datetime(2032, 2, 29, tzinfo=UTC)


def test_a_time_that_the_clock_skips_fires_after_the_gap() -> None:
    timing = cron("30 2 * * *", NEW_YORK)
    first = timing.after(local("2026-03-08T00:00"))
    assert first == local("2026-03-08T03:00")
    assert timing.after(first) == local("2026-03-09T02:30")


def test_a_time_that_comes_twice_fires_the_first_time() -> None:
    timing = cron("30 1 * * *", NEW_YORK)
    first = timing.after(local("2026-11-01T00:00"))
    assert first == local("2026-11-01T01:30", fold=0)
    assert timing.after(first) == local("2026-11-02T01:30")
    assert timing.after(local("2026-11-01T01:10", fold=1)) == local("2026-11-02T01:30")


def test_a_rhythm_goes_on_through_both_hours() -> None:
    timing = cron("*/30 * * * *", NEW_YORK)
    due = list(timing.between(local("2026-11-01T00:30"), local("2026-11-01T02:00")))
    assert {later - earlier for earlier, later in pairwise(due)} == {timedelta(minutes=30)}
    assert len(due) == 6


def test_noon_stays_noon() -> None:
    timing = cron("0 12 * * *", "Europe/Zurich")
    due = timing.between(local("2026-03-28T12:00", "Europe/Zurich"), datetime(2026, 4, 1, tzinfo=UTC))
    assert [moment.hour for moment in due] == [11, 10, 10, 10]


def schedule(catch_up: CatchUp, timing: Timing | None = None, **fields: object) -> Schedule:
    timing = timing or every(60)
    values = {"next_due_at": ANCHOR + timedelta(seconds=60), "max_concurrent": 100, **fields}
    return Schedule(
        schedule_id="s", workflow_id="w", cron=timing.cron, interval_seconds=timing.interval_seconds,
        timezone=timing.timezone, catch_up=catch_up, created_at=ANCHOR, updated_at=ANCHOR, **values,
    )  # fmt: skip


def minutes(*numbers: float) -> tuple[datetime, ...]:
    return tuple(ANCHOR + timedelta(minutes=number) for number in numbers)


@pytest.mark.parametrize("catch_up", CatchUp)
def test_what_is_on_time_fires_whatever_the_policy(catch_up: CatchUp) -> None:
    (now,) = minutes(1.02)
    plan = firings(schedule(catch_up), now, free=1, limit=10)
    assert (plan.due, plan.next_due_at, plan.blocked) == (minutes(1), *minutes(2), False)


@pytest.mark.parametrize("catch_up", CatchUp)
def test_what_is_not_due_does_nothing(catch_up: CatchUp) -> None:
    (now,) = minutes(0.5)
    assert firings(schedule(catch_up), now, free=1, limit=10).due == ()
    assert firings(schedule(catch_up, next_due_at=None), now, free=1, limit=10).next_due_at is None


def test_skip_leaves_out_what_was_missed() -> None:
    hourly = every(3600)
    late = schedule(CatchUp.SKIP, hourly, next_due_at=ANCHOR + timedelta(hours=1))
    plan = firings(late, ANCHOR + timedelta(hours=5, minutes=2), free=1, limit=10)
    assert (plan.due, plan.next_due_at) == ((), ANCHOR + timedelta(hours=6))


def test_last_makes_up_for_the_last_one() -> None:
    plan = firings(schedule(CatchUp.LAST), *minutes(7.5), free=1, limit=10)
    assert (plan.due, plan.next_due_at) == (minutes(7), *minutes(8))


def test_all_makes_up_for_each_a_few_at_a_time() -> None:
    plan = firings(schedule(CatchUp.ALL), *minutes(7.5), free=100, limit=4)
    assert (plan.due, plan.next_due_at, plan.blocked) == (minutes(1, 2, 3, 4), *minutes(5), False)
    rest = firings(schedule(CatchUp.ALL, next_due_at=plan.next_due_at), *minutes(7.5), free=100, limit=4)
    assert (rest.due, rest.next_due_at, rest.blocked) == (minutes(5, 6, 7), *minutes(8), False)


def test_without_room_skip_forgets_and_the_others_wait() -> None:
    (now,) = minutes(3.1)
    assert firings(schedule(CatchUp.SKIP), now, free=0, limit=9).next_due_at == minutes(4)[0]
    for policy in (CatchUp.LAST, CatchUp.ALL):
        plan = firings(schedule(policy), now, free=0, limit=9)
        assert (plan.due, plan.next_due_at, plan.blocked) == ((), *minutes(1), True)
    some = firings(schedule(CatchUp.ALL), now, free=2, limit=9)
    assert (some.due, some.next_due_at, some.blocked) == (minutes(1, 2), *minutes(3), True)


@given(timings, st.lists(st.integers(1, 100_000), min_size=1, max_size=8), st.integers(1, 5), st.integers(1, 5))
@settings(max_examples=60)
def test_with_all_every_due_time_is_fired_once_however_the_looks_fall(
    timing: Timing, pauses: list[int], free: int, limit: int
) -> None:
    first = timing.after(ANCHOR)
    current = schedule(CatchUp.ALL, timing, next_due_at=first)
    now, fired = ANCHOR, []
    for pause in pauses:
        now += timedelta(seconds=min(pause, (timing.interval_seconds or 3600) * 6))
        while (plan := firings(current, now, free, limit)).due:
            fired += plan.due
            current = current.evolve(next_due_at=plan.next_due_at)
    assert first is not None
    assert fired == list(timing.between(first, now))


def test_a_firing_has_one_id_wherever_it_is_made() -> None:
    due = local("2026-11-01T01:30")
    assert firing_id("s", due) == firing_id("s", due.astimezone(ZoneInfo("Asia/Tokyo")))
    assert len({firing_id("s", due), firing_id("t", due), firing_id("s", due + timedelta(seconds=1))}) == 3


@pytest.mark.parametrize(
    ("expression", "interval", "zone", "message"),
    [
        (None, None, "UTC", "either a cron expression or an interval"),
        ("* * * * *", 60, "UTC", "either a cron expression or an interval"),
        (None, 0, "UTC", "at least 1 second"),
        ("* * * *", None, "UTC", "has 4 fields, not 5"),
        ("0 * * * * *", None, "UTC", "has 6 fields, not 5"),
        ("@daily", None, "UTC", "has 1 fields"),
        ("61 * * * *", None, "UTC", "cannot be read: Bad minute"),
        ("0 0 30 2 *", None, "UTC", "cannot be read: Bad day-of-month"),
        ("* * * * *", None, "Europe/Zürich", "did you mean 'Europe/Zurich'"),
        ("* * * * *", None, "../etc/passwd", "there is no time zone"),
        ("* * * * *", None, "America", "there is no time zone"),
    ],
)
def test_what_cannot_be_a_timing_is_said(expression, interval, zone, message) -> None:
    with pytest.raises(InputError, match=message):
        check_timing(expression, interval, zone, ANCHOR)


def test_a_timing_is_first_due_after_now() -> None:
    assert check_timing("0 9 * * MON-FRI", None, "Europe/Zurich", ANCHOR) == local("2026-01-01T09:00", "Europe/Zurich")
    assert check_timing(None, 90, "UTC", ANCHOR) == ANCHOR + timedelta(seconds=90)
    assert time_zone("UTC").key == "UTC"
