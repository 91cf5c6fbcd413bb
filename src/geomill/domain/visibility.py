"""Who may see what is served: one rule for tiles, features and the catalogue.

In the internal zone a credential of the house sees whatever has data and is not deleted, a partner's sees its own and
what is public, and who shows none sees only what is public. A signed link adds the one asset that it is for. In the
external zone there is nothing else to see.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from geomill.domain.principal import Principal, Role
from geomill.domain.states import ApprovalState, ClearanceState


class Sight(BaseModel):
    """What one caller may see, besides what is public."""

    model_config = ConfigDict(frozen=True)

    everything: bool = False
    platform_id: str | None = None
    asset_id: str | None = None
    """The one that a signed link opens."""

    def sees(
        self,
        platform_id: str,
        approval: ApprovalState,
        clearance: ClearanceState,
        *,
        deleted: bool,
        asset_id: str | None = None,
    ) -> bool:
        if deleted:
            return False
        if self.asset_id is not None and self.asset_id == asset_id:
            return True
        if self.everything or (self.platform_id is not None and self.platform_id == platform_id):
            return True
        return is_public(approval, clearance)


PUBLIC_ONLY = Sight()
_HOUSE = (Role.READER, Role.REVIEWER, Role.OPERATOR)


def is_public(approval: ApprovalState, clearance: ClearanceState) -> bool:
    return approval is ApprovalState.APPROVED and clearance is ClearanceState.PUBLIC


def sight_of(principal: Principal | None) -> Sight:
    if principal is None:
        return PUBLIC_ONLY
    if principal.has(*_HOUSE) or (principal.has(Role.SUBMITTER) and principal.platform_id is None):
        return Sight(everything=True)
    return Sight(platform_id=principal.platform_id)
