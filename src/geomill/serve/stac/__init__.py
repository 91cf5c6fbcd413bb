"""The read-only STAC API, to be mounted in another application.

    stac = create_stac_app(database_url=url, zone="internal", storage=storage)
    parent.mount("/stac", stac)

The parent must enter `stac.router.lifespan_context(stac)`, because lifespans of mounted applications do not run. It
puts a `Sight` (`geomill.domain.access.visibility`) into `request.state.sight` (`scope["state"]["sight"]`); without one
only public items are visible. In the external zone everything is public. Links include the mount prefix. Files of items
are served at `files/{asset_id}/{revision}/{path}`, with ranges.
"""

import logging

logging.getLogger("stac_fastapi.types.config").setLevel(logging.ERROR)  # it warns about defaults that are replaced here

from geomill.serve.stac.app import create_stac_app  # noqa: E402  only now

__all__ = ["create_stac_app"]
