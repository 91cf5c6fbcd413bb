"""Circuit breakers in the database."""

from __future__ import annotations

from geomill.domain.engine.circuit import Circuit, CircuitBreaker
from geomill.sql import queries
from geomill.store.pool import Connection


async def read(conn: Connection) -> list[Circuit]:
    return [Circuit.from_row(row) for row in await (await conn.execute(queries("circuits").read)).fetchall()]


async def failed(
    conn: Connection, handler: str, policy: CircuitBreaker, failures: int, error_code: str, error_message: str
) -> bool:
    """Count failures of a handler. Returns whether its circuit has opened now."""
    parameters = {
        "handler": handler,
        "failures": failures,
        "error_code": error_code,
        "error_message": error_message,
        "threshold": policy.failures,
        "open_seconds": policy.open_seconds,
    }
    row = await (await conn.execute(queries("circuits").failed, parameters)).fetchone()
    return row is not None and bool(row["opened"])


async def succeeded(conn: Connection, handler: str) -> None:
    await conn.execute(queries("circuits").succeeded, {"handler": handler})


async def probe(conn: Connection, handler: str, policy: CircuitBreaker) -> bool:
    """Return whether the caller may let one task through to probe the handler."""
    parameters = {"handler": handler, "open_seconds": policy.open_seconds}
    return await (await conn.execute(queries("circuits").probe, parameters)).fetchone() is not None


async def close(conn: Connection, handler: str) -> Circuit | None:
    """Close the circuit of a handler. Returns None if the handler has none."""
    row = await (await conn.execute(queries("circuits").close, {"handler": handler})).fetchone()
    return Circuit.from_row(row) if row else None
