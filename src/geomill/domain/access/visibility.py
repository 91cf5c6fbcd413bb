"""Who may see what: the one rule for the API, tiles, features, files and the catalogue.

An asset has two faces. Those who may see the asset itself (the house, its own partner, the holder of a signed link) get
the newest revision that has completed. Everybody else gets the public revision, or nothing. In the external zone there
are only public revisions.

The database keeps the public revision of each asset in one column, `public_revision` (domain/assets/asset.py).

The rule stands here twice, for Python and for SQL. A property test holds the two equal, and the rule of the catalogue
(`sql/functions/item_rule.sql`) with them: tests/integration/store/test_visibility.py.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from geomill.domain.access.principal import Principal, Role

Face = TypeVar("Face")


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

    def face(self, platform_id: str, asset_id: str, newest: Face, public: Face) -> Face:
        """The newest face for a caller who may see the asset itself, the public one for everybody else."""
        return newest if self.covers(platform_id, asset_id) else public


class Revisions(Protocol):
    """The fields of an asset that decide which revision is seen."""

    @property
    def asset_id(self) -> str: ...
    @property
    def platform_id(self) -> str: ...
    @property
    def served_revision(self) -> int | None: ...
    @property
    def public_revision(self) -> int | None: ...
    @property
    def data_deleted_through(self) -> int: ...
    @property
    def deleted_at(self) -> datetime | None: ...


def seen_revision(sight: Sight, asset: Revisions) -> int | None:
    """The revision of an asset that a caller sees; None if the caller sees nothing of it."""
    served = asset.served_revision
    if asset.deleted_at is not None or served is None or served <= asset.data_deleted_through:
        return None
    return sight.face(asset.platform_id, asset.asset_id, served, asset.public_revision)


SERVED_SQL = "{asset}.deleted_at IS NULL AND {asset}.served_revision > {asset}.data_deleted_through"
"""`{served asset as a}` in SQL files: whether anybody at all sees something of the asset."""

SEEN_REVISION_SQL = (
    "CASE WHEN coalesce(%(everything)s OR {asset}.platform_id = %(platform_id)s OR {asset}.asset_id = %(asset_id)s,"
    " false) THEN {asset}.served_revision ELSE {asset}.public_revision END"
)
"""`{seen revision of asset as a}` in SQL files: the revision of a served asset that a caller sees. Its parameters are
the fields of `Sight`."""


PUBLIC_ONLY = Sight()
_HOUSE = (Role.READER, Role.REVIEWER, Role.OPERATOR)


def sight_of(principal: Principal | None) -> Sight:
    """The sight of a principal: the house sees everything, a partner what is of its platform. A submitter without a
    platform sees no more than everybody."""
    if principal is None:
        return PUBLIC_ONLY
    if principal.has(*_HOUSE):
        return Sight(everything=True)
    return Sight(platform_id=principal.platform_id) if principal.has(Role.SUBMITTER) else PUBLIC_ONLY
