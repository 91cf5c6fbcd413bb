"""Styles of an exported asset: they go outside with it, and a later change follows at once or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from geomill.domain.assets.style import STYLE
from geomill.errors import UnavailableError
from geomill.platform.styles import delete_style, put_style
from geomill.store.pool import open_pool
from tests.integration.catalogue.conftest import an_item
from tests.integration.catalogue.test_export import ASSETS, ITEMS, exported, outside, publish
from tests.integration.platform.conftest import ADA, Office

DARK = STYLE.validate_python({"kind": "raster", "bidx": [1], "rescale": [[0, 9]]})
RENDERS = {"default": {"assets": ["data"], "bidx": [3]}}
DRAWN = {"assets": ["data"], "bidx": [1], "rescale": [[0.0, 9.0]]}


async def put(office: Office, asset_id: str, name: str, *, is_default: bool = False) -> Any:
    return await office.decide(put_style, asset_id, name, DARK, ADA, is_default=is_default)


def shown(url: str) -> tuple[Any, Any]:
    (row,), (item,) = outside(url, ASSETS), outside(url, ITEMS)
    return row["outputs"]["styles"], item["item"]["properties"]["renders"]


async def test_styles_go_outside_with_the_asset_and_follow_later_changes(
    office: Office, external_database: str
) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    asset = await publish(office, item=an_item(renders=RENDERS))
    await put(office, asset.asset_id, "dark", is_default=True)
    await exported(office, asset.asset_id)
    styles, renders = shown(external_database)
    assert (styles["default"], list(styles["styles"])) == ("dark", ["dark"])
    assert renders == {"default": DRAWN, "dark": DRAWN, "automatic": RENDERS["default"]}

    assert office.engine.external is not None
    office = replace(office, desk=replace(office.desk, outside=office.engine.external.outside))
    await office.decide(delete_style, asset.asset_id, "dark", ADA)
    await put(office, asset.asset_id, "light")
    styles, renders = shown(external_database)
    assert (styles.get("default"), list(styles["styles"])) == (None, ["light"])
    assert renders == {**RENDERS, "light": DRAWN}


async def test_a_style_does_not_change_if_the_external_zone_does_not_answer(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    asset = await publish(office)
    await exported(office, asset.asset_id)
    async with open_pool("postgresql://nobody@127.0.0.1:1/none", size=1, idle=True) as nowhere:
        broken = replace(office, desk=replace(office.desk, outside=nowhere))
        with pytest.raises(UnavailableError, match="not changed"):
            await put(broken, asset.asset_id, "dark")
    assert await office.rows("SELECT * FROM app.asset_styles") == []
    assert await office.rows("SELECT * FROM app.asset_audit WHERE decision = 'styled'") == []
