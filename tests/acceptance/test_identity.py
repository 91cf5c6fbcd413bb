"""A platform whose processes have no password: each of them asks for tokens of a managed identity."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Geomill
from tests.acceptance.running import eventually, is_ready, ready, show_key
from tests.identity_endpoint import ALWAYS_STALE
from tests.integration.store.test_tokens import TokenRole, role  # noqa: F401  a fixture

DATABASE = "https://ossrdbms-aad.database.windows.net"


@pytest.mark.slow
def test_a_platform_works_on_after_its_tokens_have_ended(data: Path, geomill: Geomill, role: TokenRole) -> None:  # noqa: F811
    url = role.url.partition("&passfile")[0]
    environ = {"GEOMILL_DATABASE_URL": url, "GEOMILL_DATABASE_AUTH": "azure", "AZURE_CLIENT_ID": "an-identity"}
    role.endpoint.life = ALWAYS_STALE
    role.endpoint.rotate(DATABASE)
    assert "no password supplied" in geomill("db", "migrate", GEOMILL_DATABASE_URL=url).err
    migrated = geomill("db", "migrate", **environ)
    assert migrated.code == 0, migrated.err
    with ready(data, **environ) as (_, client):
        show_key(client, data)
        assert client.get("/stac/collections").status_code == client.get("/vector/collections").status_code == 200
        for _ in range(2):
            role.endpoint.rotate(DATABASE)
            assert role.end_sessions() >= 5
            eventually(lambda: is_ready(client), "ready")
            done = geomill("jobs", "submit", "hello_world", "--wait", "--json", GEOMILL_DATA=str(data), **environ)
            assert done.json["result"] == {"message": "Hello, World!"}, done.err
            answered = [client.get(path).status_code for path in ("/stac/collections", "/vector/collections")]
            assert answered == [200, 200]
    assert {request.get("client_id") for request in role.endpoint.requests[4:]} == {"an-identity", None}
    backup = data.parent / "backup"
    assert geomill("backup", str(backup), GEOMILL_DATA=str(data), **environ).code == 0
