"""The STAC API, read-only, as a part of another application.

    stac = create_stac_app(database_url=url, zone="internal", storage=storage)
    parent.mount("/stac", stac)

The parent enters `stac.router.lifespan_context(stac)` itself: lifespans of mounted applications do not run. It puts a
`Sight` (`geomill.domain.access.visibility`) into `request.state.sight` (`scope["state"]["sight"]`); without one only
public items are seen. In the external zone everything is public. Links carry the prefix at which it is mounted. Files
of items are served at `files/{asset_id}/{revision}/{path}` below it, with ranges.
"""

import logging

logging.getLogger("stac_fastapi.types.config").setLevel(logging.ERROR)  # it warns of defaults that we replace

from geomill.serve.stac.app import create_stac_app  # noqa: E402  only now

__all__ = ["create_stac_app"]
