"""The rule for who sees which revision. It holds for the API, tiles, features, files and the catalogue.

An asset has two faces. Callers who may see the asset itself (staff, its own partner, the holder of a signed link) get
the newest completed revision. Everybody else gets the public revision, or nothing. The external zone has only public
revisions.

The database keeps the public revision of each asset in the column `public_revision` (domain/assets/asset.py).

The rule is written here twice, in Python and in SQL. A property test checks that both agree with each other and with
the rule of the catalogue (`sql/functions/item_rule.sql`): tests/integration/store/test_visibility.py.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from geomill.domain.access.principal import Principal, Role

Face = TypeVar("Face")


class Sight(BaseModel):
    """The assets that one caller may see, besides the public ones."""

    model_config = ConfigDict(frozen=True)

    everything: bool = False
    platform_id: str | None = None
    asset_id: str | None = None
    """The asset that a signed link opens."""

    def covers(self, platform_id: str | None, asset_id: str | None = None) -> bool:
        """Whether the caller may see an asset of this platform although it is not public."""
        if self.everything or (self.asset_id is not None and self.asset_id == asset_id):
            return True
        return self.platform_id is not None and self.platform_id == platform_id

    def face(self, platform_id: str, asset_id: str, newest: Face, public: Face) -> Face:
        """Return the newest face for a caller who may see the asset itself, else the public one."""
        return newest if self.covers(platform_id, asset_id) else public


class Revisions(Protocol):
    """The fields of an asset that decide which revision a caller sees."""

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
    """Return the revision of an asset that a caller sees, or None."""
    served = asset.served_revision
    if asset.deleted_at is not None or served is None or served <= asset.data_deleted_through:
        return None
    return sight.face(asset.platform_id, asset.asset_id, served, asset.public_revision)


SERVED_SQL = "{asset}.deleted_at IS NULL AND {asset}.served_revision > {asset}.data_deleted_through"
"""The fragment `{served asset as a}` of SQL files: whether any caller sees a revision of the asset."""

SEEN_REVISION_SQL = (
    "CASE WHEN coalesce(%(everything)s OR {asset}.platform_id = %(platform_id)s OR {asset}.asset_id = %(asset_id)s,"
    " false) THEN {asset}.served_revision ELSE {asset}.public_revision END"
)
"""The fragment `{seen revision of asset as a}` of SQL files: the revision of a served asset that a caller sees. Its
parameters are the fields of `Sight`."""


PUBLIC_ONLY = Sight()
_HOUSE = (Role.READER, Role.REVIEWER, Role.OPERATOR)


def sight_of(principal: Principal | None) -> Sight:
    """Return the sight of a principal. Staff see everything, a submitter the assets of its platform. A submitter
    without a platform sees only public revisions."""
    if principal is None:
        return PUBLIC_ONLY
    if principal.has(*_HOUSE):
        return Sight(everything=True)
    return Sight(platform_id=principal.platform_id) if principal.has(Role.SUBMITTER) else PUBLIC_ONLY
