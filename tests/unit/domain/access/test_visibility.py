from __future__ import annotations

import pytest

from geomill.domain.access.principal import Principal, Role
from geomill.domain.access.visibility import PUBLIC_ONLY, Sight, sight_of


def someone(*roles: Role, platform: str | None = None) -> Principal:
    return Principal(subject="someone", roles=frozenset(roles), platform_id=platform)


@pytest.mark.parametrize("role", [Role.READER, Role.REVIEWER, Role.OPERATOR, Role.ADMIN])
def test_a_credential_of_the_house_sees_every_platform(role):
    assert sight_of(someone(role)).covers("ddh")
    assert sight_of(someone(role, platform="arcgis")).covers("ddh", "a1")


def test_a_partner_sees_its_own_platform_only():
    sight = sight_of(someone(Role.SUBMITTER, platform="ddh"))
    assert sight.covers("ddh")
    assert not sight.covers("arcgis")
    assert not sight.covers(None)


@pytest.mark.parametrize(
    "sight",
    [
        sight_of(None),
        PUBLIC_ONLY,
        Sight(),
        sight_of(someone()),
        sight_of(someone(platform="ddh")),
        sight_of(someone(Role.SUBMITTER)),
    ],
)
def test_whoever_was_not_given_more_sees_only_what_is_public(sight):
    assert not sight.covers("ddh")
    assert not sight.covers("ddh", "a1")
    assert not sight.covers(None)
    assert not sight.covers(None, None)


def test_a_signed_link_opens_its_asset_and_no_other():
    sight = Sight(asset_id="a1")
    assert sight.covers("ddh", "a1")
    assert not sight.covers("ddh", "a2")
    assert not sight.covers("ddh")
