"""Failed and superseded revisions leave no data once their time is over. Data that is served, public or restorable
stays."""

from __future__ import annotations

from datetime import timedelta

import pytest

from geomill.domain.objectname import ObjectName, Zone
from geomill.domain.states import ClearanceState
from geomill.engine.maintenance.leftovers import LeftoverOptions, Leftovers
from geomill.errors import AssetState
from geomill.platform import retrying, review
from geomill.store.leftovers import KeptFor
from tests.integration.platform.conftest import ADA, BOB, Office

MONTH = timedelta(days=30)
STEM = "idnlulc/jakarta2024/v10"
TABLE = "idn_lulc_jakarta_2024_v10"


def file_of(revision: int) -> ObjectName:
    return ObjectName(Zone.SILVER, "cogs", f"{STEM}/_r{revision}/out.tif")


async def make(office: Office, revision: int, **changes: object) -> str:
    """A revision with a file and a table, as its job would have left them."""
    name = file_of(revision)
    await office.storage.put_bytes(name, b"data")
    async with office.engine.pool.connection() as conn:
        await conn.execute("CREATE SCHEMA IF NOT EXISTS geo")
        await conn.execute(f"CREATE TABLE geo.{TABLE}_r{revision} (id integer)".encode())
    files = [{"zone": "silver", "container": "cogs", "path": name.path, "sha256": "0" * 64, "size": 4}]
    asset = await office.published(processing_options={"files": files, **changes}, overwrite=revision > 1)
    assert asset.table_stem == TABLE
    return asset.asset_id


async def age(office: Office, days: int = 60) -> None:
    """Everything that happened so far happened that long ago."""
    async with office.engine.pool.connection() as conn, conn.transaction():
        await conn.execute("SET LOCAL session_replication_role = replica")  # the guards refuse it
        await conn.execute(f"UPDATE app.asset_revisions SET superseded_at = now() - interval '{days} days'".encode())
        await conn.execute(f"UPDATE app.geospatial_assets SET updated_at = now() - interval '{days} days'".encode())


async def clean(office: Office, failed: timedelta | None = MONTH, completed: timedelta | None = MONTH) -> int:
    options = LeftoverOptions(KeptFor(failed, completed))
    return await Leftovers(office.engine.pool, office.storage, options).run_once()


async def there(office: Office) -> list[int]:
    """The revisions that have their file; they have their table, too."""
    files = [n for n in range(1, 6) if await office.storage.exists(file_of(n))]
    names = await office.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'geo' ORDER BY 1")
    assert [row["tablename"] for row in names] == [f"{TABLE}_r{n}" for n in files]
    return files


@pytest.fixture
async def working(office: Office) -> Office:
    office.engine.orchestrator()
    office.engine.worker()
    return office


async def test_a_revision_that_failed_goes_when_its_time_is_over(working: Office) -> None:
    await make(working, 1)
    await make(working, 2, fails=True)
    assert await clean(working) == 0
    await age(working)
    assert await clean(working, failed=timedelta(days=90)) == 0
    assert await clean(working) == 1
    assert await there(working) == [1]
    assert await clean(working) == 0  # it is noted


async def test_a_retry_makes_it_anew_and_it_is_deleted_again(working: Office) -> None:
    asset_id = await make(working, 1, fails=True)
    await age(working)
    assert await clean(working) == 1
    assert await there(working) == []
    await working.storage.put_bytes(file_of(1), b"data")
    async with working.engine.pool.connection() as conn:
        retried = await retrying.retry(conn, working.desk, asset_id, ADA)
    await working.ended(retried.request.job_id)
    assert await clean(working) == 0
    await age(working)
    assert await clean(working) == 1
    assert await there(working) == []


async def test_superseded_ones_are_restorable_until_then(working: Office) -> None:
    asset_id = await make(working, 1)
    await make(working, 2)
    await make(working, 3)
    await age(working)
    assert await clean(working, completed=None) == 0
    assert await there(working) == [1, 2, 3]
    await working.decide(review.rollback, asset_id, 1, BOB)  # revision 4 is made of the data of revision 1
    await age(working)
    assert await clean(working) == 2
    assert await there(working) == [1]
    with pytest.raises(AssetState, match=r"the data of revision 2 of .* was deleted"):
        await working.decide(review.rollback, asset_id, 2, BOB)
    waiting = await working.rows("SELECT asset_id FROM catalogue.pending")
    assert waiting in ([], [{"asset_id": asset_id}])  # an orchestrator may have settled it already


async def test_what_is_public_stays_while_a_newer_one_waits(working: Office) -> None:
    asset_id = await make(working, 1)
    await working.decide(review.approve, asset_id, ClearanceState.PUBLIC, BOB, 1)
    await make(working, 2)
    await age(working)
    assert await clean(working) == 0
    assert await there(working) == [1, 2]


async def test_nobody_waits_for_a_job_that_still_runs(working: Office) -> None:
    accepted = await working.submit(ADA, processing_options={"pause": 30})
    await working.engine.until(accepted.request.job_id, lambda job: job is not None)
    await age(working)
    assert await clean(working) == 0
