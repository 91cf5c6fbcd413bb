"""Computes the `Sight` of a caller from the guard's admission and the ticket of a signed link."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from starlette.types import Scope

from geomill.api.access import admission
from geomill.domain.access.signed_link import PARAMETER, LinkKey
from geomill.domain.access.visibility import PUBLIC_ONLY, Sight, sight_of
from geomill.domain.objectname import Zone
from geomill.errors import Forbidden, Unauthenticated
from geomill.remedies import NEW_LINK


@dataclass(frozen=True, slots=True)
class SignedLink:
    """The asset that a ticket opens, and the generation of the ticket."""

    asset_id: str
    generation: int


def sight_for(scope: Scope, zone: Zone, prefix: str) -> Sight:
    """Return the sight of the caller. In the external zone everything is public, so credentials do not matter."""
    admitted = admission(scope)
    if admitted is None or admitted.rule != f"ANY {prefix}":
        raise Forbidden("no access rule admits this request")
    return PUBLIC_ONLY if zone is Zone.EXTERNAL else sight_of(admitted.principal)


def signed_link(scope: Scope, zone: Zone, key: LinkKey | None) -> SignedLink | None:
    """Return the signed link of the request, or None. Raises `Unauthenticated` if its ticket is not valid."""
    ticket = _ticket(scope) if zone is not Zone.EXTERNAL else None
    return _opened_by(ticket, scope["path"], key) if ticket else None


def _ticket(scope: Scope) -> str | None:
    query: bytes = scope.get("query_string", b"")
    if PARAMETER.encode() not in query:
        return None
    tickets = [value for name, value in parse_qsl(query.decode("latin-1")) if name == PARAMETER]
    if len(tickets) > 1:
        raise Unauthenticated("the link has more than one ticket", remedy=NEW_LINK.http)
    return tickets[0] if tickets else None


def _opened_by(ticket: str, path: str, key: LinkKey | None) -> SignedLink:
    """Return the asset that is in the path and that the ticket opens."""
    now = time.time()
    for part in path.split("/")[:6]:
        asset_id = part.partition(".")[0]
        generation = key.generation(ticket, asset_id, now) if key and asset_id else None
        if generation is not None:
            return SignedLink(asset_id, generation)
    raise Unauthenticated("the link has expired or is for another asset", remedy=NEW_LINK.http)


async def _sight(request: Request) -> Sight:
    sight: Sight = getattr(request.state, "sight", PUBLIC_ONLY)
    return sight


TheSight = Annotated[Sight, Depends(_sight)]
"""The part of the assets that the caller may see."""
