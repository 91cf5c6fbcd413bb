"""Who may see what: the one rule for the API, tiles, features, files and the catalogue.

An asset has two faces. Whoever may see the asset itself (the house, its own partner, the holder of a signed link) gets
the newest revision that has completed. Everybody else gets the public revision, or nothing. What nobody has allowed is
not seen. In the external zone there is nothing but public revisions.

The database keeps the public revision of each asset in one column, `public_revision` (domain/assets/asset.py).
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from geomill.domain.access.principal import Principal, Role


class Sight(BaseModel):
    """What one caller may see, besides what is public."""

    model_config = ConfigDict(frozen=True)

    everything: bool = False
    platform_id: str | None = None
    asset_id: str | None = None
    """The one that a signed link opens."""

    def covers(self, platform_id: str | None, asset_id: str | None = None) -> bool:
        """Whether the caller may see an asset of this platform although it is not public."""
        if self.everything or (self.asset_id is not None and self.asset_id == asset_id):
            return True
        return self.platform_id is not None and self.platform_id == platform_id


PUBLIC_ONLY = Sight()
_HOUSE = (Role.READER, Role.REVIEWER, Role.OPERATOR)


def sight_of(principal: Principal | None) -> Sight:
    """The house sees everything, a partner what is of its platform. A submitter without a platform sees no more than
    everybody."""
    if principal is None:
        return PUBLIC_ONLY
    if principal.has(*_HOUSE):
        return Sight(everything=True)
    return Sight(platform_id=principal.platform_id) if principal.has(Role.SUBMITTER) else PUBLIC_ONLY
