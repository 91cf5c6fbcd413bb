"""When a failed attempt is tried again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from geomill.domain.engine.retry import JITTER, PASSING_ATTEMPTS, RetryPolicy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICIES = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 100),
    backoff=st.sampled_from(["none", "fixed", "exponential"]),
    initial_delay_seconds=st.floats(0, 86_400),
    max_delay_seconds=st.floats(0, 86_400),
)


def seconds(policy: RetryPolicy, failures: int, seed: str = "job:node:1") -> float:
    return policy.delay(failures=failures, seed=seed).total_seconds()


def test_without_a_policy_there_are_three_exponential_attempts_from_one_second() -> None:
    policy = RetryPolicy()
    assert (policy.max_attempts, policy.backoff, policy.initial_delay_seconds) == (3, "exponential", 1.0)


@pytest.mark.parametrize(("failures", "allowed"), [(1, True), (2, True), (3, False), (4, False)])
def test_the_first_attempt_counts(failures: int, allowed: bool) -> None:
    assert RetryPolicy(max_attempts=3).allows(failures=failures, error_code="x", retryable=True) is allowed


def test_one_attempt_is_never_tried_again() -> None:
    assert not RetryPolicy(max_attempts=1).allows(failures=1, error_code="x", retryable=True)


def test_what_cannot_succeed_is_not_tried_again() -> None:
    assert not RetryPolicy().allows(failures=1, error_code="x", retryable=False)


@pytest.mark.parametrize(
    ("retry_on", "code", "allowed"),
    [(None, "any", True), (("timeout", "io"), "io", True), (("timeout",), "io", False), ((), "io", False)],
)
def test_retry_on_names_the_errors(retry_on: tuple[str, ...] | None, code: str, allowed: bool) -> None:
    assert RetryPolicy(retry_on=retry_on).allows(failures=1, error_code=code, retryable=True) is allowed


def test_no_backoff_waits_not_at_all() -> None:
    assert seconds(RetryPolicy(backoff="none", initial_delay_seconds=60), 5) == 0


def test_a_fixed_delay_is_always_the_same() -> None:
    policy = RetryPolicy(backoff="fixed", initial_delay_seconds=7)
    assert {seconds(policy, failures, f"seed {failures}") for failures in range(1, 20)} == {7}


def test_a_fixed_delay_is_bounded_too() -> None:
    assert seconds(RetryPolicy(backoff="fixed", initial_delay_seconds=70, max_delay_seconds=5), 1) == 5


@pytest.mark.parametrize("failures", [1, 2, 3, 8, 9, 10, 99])
def test_an_exponential_delay_doubles_up_to_the_maximum_less_jitter(failures: int) -> None:
    policy = RetryPolicy(initial_delay_seconds=1, max_delay_seconds=300)
    full = min(2.0 ** (failures - 1), 300)
    delays = {seconds(policy, failures, f"job:n{number}:2") for number in range(300)}
    assert full * (1 - JITTER) <= min(delays) < full * (1 - JITTER * 0.9)
    assert full * (1 - JITTER * 0.1) < max(delays) <= full


@settings(max_examples=150, deadline=None)
@given(POLICIES, st.integers(1, 10_000), st.text(max_size=30))
def test_a_delay_is_bounded_and_the_same_when_asked_again(policy: RetryPolicy, failures: int, seed: str) -> None:
    delay = policy.delay(failures=failures, seed=seed)
    assert timedelta(0) <= delay <= timedelta(seconds=policy.max_delay_seconds)
    assert delay == policy.model_copy().delay(failures=failures, seed=seed)
    assert policy.not_before(NOW, failures=failures, seed=seed) == NOW + delay


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_attempts": 0},
        {"max_attempts": 101},
        {"backoff": "linear"},
        {"initial_delay_seconds": -1},
        {"initial_delay_seconds": float("nan")},
        {"max_delay_seconds": 86_401},
        {"attempts": 3},
    ],
)
def test_a_policy_out_of_bounds_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RetryPolicy.model_validate(wrong)


@pytest.mark.parametrize("code", ["no_space", "storage_unavailable", "database_unreachable"])
def test_errors_that_pass_are_outlasted_by_the_default(code: str) -> None:
    policy = RetryPolicy()
    delays, failures = 0.0, 1
    while policy.allows(failures=failures, error_code=code, retryable=True):
        delays += seconds(policy, failures)
        failures += 1
    assert failures == PASSING_ATTEMPTS
    assert delays > 800
    assert seconds(policy, 1) <= 1


@pytest.mark.parametrize(
    "policy",
    [
        RetryPolicy(max_attempts=1),
        RetryPolicy(backoff="none"),
        RetryPolicy(backoff="fixed"),
        RetryPolicy(retry_on=("timeout",)),
    ],
)
def test_who_says_otherwise_is_obeyed(policy: RetryPolicy) -> None:
    assert not policy.allows(failures=3, error_code="no_space", retryable=True)


def test_more_attempts_than_that_stay_more() -> None:
    assert RetryPolicy(max_attempts=60).allows(failures=59, error_code="no_space", retryable=True)
