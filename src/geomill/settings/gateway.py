"""The gateway and the servers: addresses, limits of connections, signed links, and the console."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import NoDecode

from geomill.domain.access.signed_link import LONGEST_SECONDS
from geomill.domain.addresses import is_loopback
from geomill.settings.concern import Concern, split_commas


class GatewaySettings(Concern):
    """The address of the HTTP API."""

    gateway_host: Annotated[str, Field(description="Address that the gateway listens on")] = "127.0.0.1"
    gateway_port: Annotated[int, Field(ge=0, le=65_535, description="Port that the gateway listens on")] = 8000


class ConnectionSettings(Concern):
    """Limits on the connections and the memory of gateway and servers."""

    trusted_proxies: Annotated[
        list[str],
        NoDecode,
        Field(description="Addresses and networks whose X-Forwarded-For is trusted, comma-separated; default: none"),
    ] = Field(default_factory=list)
    head_limit: Annotated[int, Field(ge=4096, description="Maximum size of a request head in bytes")] = 65_536
    head_seconds: Annotated[
        float, Field(gt=0, le=600, description="Seconds within which a request head must arrive")
    ] = 10.0
    body_seconds: Annotated[
        float, Field(gt=0, le=3600, description="Seconds within which a request body must arrive")
    ] = 60.0
    connections_per_address: Annotated[
        int, Field(ge=1, description="Maximum number of connections of one address; trusted proxies have no limit")
    ] = 200
    streams_per_caller: Annotated[int, Field(ge=1, description="Maximum number of event streams of one caller")] = 20
    serve_memory_mb: Annotated[
        int, Field(ge=512, description="Megabytes of memory beyond which a gateway or server exits, to be restarted")
    ] = 4096

    _lists = field_validator("trusted_proxies", mode="before")(split_commas)

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: list[str]) -> list[str]:
        for proxy in value:
            try:
                ip_network(proxy)
            except ValueError:
                raise ValueError(
                    f"'{proxy}' is not an address such as 10.0.0.5, or a network such as 10.0.0.0/8"
                ) from None
        return value

    @property
    def proxies(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(ip_network(proxy) for proxy in self.trusted_proxies)


class ServingSettings(Concern):
    """The address of `geomill serve`, and the signing of links to data that is not public."""

    serve_port: Annotated[int, Field(ge=0, le=65_535, description="Port that `geomill serve` listens on")] = 8001
    link_secret: Annotated[
        Annotated[SecretStr, Field(min_length=32)] | None,
        Field(description="Secret that signs links, the same on all machines; default: a file in the data folder"),
    ] = None
    external_url: Annotated[
        str | None, Field(description="Public URL of the external server; links to public data begin with it")
    ] = None
    link_seconds: Annotated[
        int, Field(ge=60, le=LONGEST_SECONDS, description="Seconds that a signed link is valid by default")
    ] = 86_400


class ConsoleSettings(Concern):
    """The console: how long a browser stays signed in, how people sign in, and its base map."""

    session_seconds: Annotated[
        int, Field(ge=300, le=30 * 86_400, description="Seconds after which a session of the console ends")
    ] = 43_200
    session_idle_seconds: Annotated[
        int, Field(ge=120, le=30 * 86_400, description="Seconds without a request after which a session ends")
    ] = 7200
    sign_in_link_seconds: Annotated[
        int, Field(ge=30, le=86_400, description="Seconds for which a one-time sign-in link works")
    ] = 900
    oidc_client_id: Annotated[
        str | None, Field(description="Client id of the console at the OIDC issuer; default: people sign in with keys")
    ] = None
    oidc_client_secret: Annotated[
        SecretStr | None, Field(description="Client secret of the console at the issuer; default: a public client")
    ] = None
    oidc_scopes: Annotated[
        str, Field(pattern=r"^[ -~]+$", description="Scopes that the console asks the issuer for")
    ] = "openid profile email"
    base_map_url: Annotated[
        str | None,
        Field(description="Tiles of a base map, https://…/{z}/{x}/{y}.png; default: an outline of the world"),
    ] = None
    base_map_attribution: Annotated[str, Field(max_length=200, description="Whom the base map credits")] = ""

    @field_validator("base_map_url")
    @classmethod
    def _tiles(cls, value: str | None) -> str | None:
        if not value:
            return None
        parts = urlsplit(value)
        local = parts.scheme == "http" and is_loopback(parts.hostname or "")
        if not (parts.scheme == "https" or local) or not parts.hostname or any(mark in value for mark in " ;,'\""):
            raise ValueError("must be one https:// URL")
        if any(name not in value for name in ("{z}", "{x}", "{y}")):
            raise ValueError("must contain {z}, {x} and {y}")
        return value
