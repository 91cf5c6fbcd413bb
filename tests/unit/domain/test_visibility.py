from __future__ import annotations

import itertools

import pytest

from geomill.domain.principal import Principal, Role
from geomill.domain.states import ApprovalState, ClearanceState
from geomill.domain.visibility import PUBLIC_ONLY, Sight, is_public, sight_of

STATES = list(itertools.product(ApprovalState, ClearanceState))


def someone(*roles: Role, platform: str | None = None) -> Principal:
    return Principal(subject="someone", roles=frozenset(roles), platform_id=platform)


@pytest.mark.parametrize("role", [Role.READER, Role.REVIEWER, Role.OPERATOR, Role.ADMIN, Role.SUBMITTER])
def test_a_credential_of_the_house_sees_everything_but_what_is_deleted(role):
    sight = sight_of(someone(role))
    for approval, clearance in STATES:
        assert sight.sees("ddh", approval, clearance, deleted=False)
        assert not sight.sees("ddh", approval, clearance, deleted=True)


def test_a_partner_sees_its_own_and_what_is_public():
    sight = sight_of(someone(Role.SUBMITTER, platform="ddh"))
    for approval, clearance in STATES:
        assert sight.sees("ddh", approval, clearance, deleted=False)
        assert sight.sees("arcgis", approval, clearance, deleted=False) == is_public(approval, clearance)
        assert not sight.sees("ddh", approval, clearance, deleted=True)


@pytest.mark.parametrize("sight", [sight_of(None), PUBLIC_ONLY, Sight(), sight_of(someone())])
def test_who_shows_nothing_sees_only_what_is_approved_and_public(sight):
    seen = [state for state in STATES if sight.sees("ddh", *state, deleted=False)]
    assert seen == [(ApprovalState.APPROVED, ClearanceState.PUBLIC)]
