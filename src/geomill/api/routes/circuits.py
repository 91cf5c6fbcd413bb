"""Routes of circuits of handlers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from geomill.api.access import ThePrincipal
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.contract.circuits import CircuitList, CircuitView
from geomill.domain.access.operator_audit import OperatorAction
from geomill.errors import NotFoundError
from geomill.remedies import LIST_CIRCUITS
from geomill.store import circuits, operator_audit

router = APIRouter(prefix="/api/v1/circuits", tags=["circuits"], responses=problem_responses(503))


@router.get("", summary="List the circuits of handlers that have failed")
async def list_circuits(gateway: TheGateway) -> CircuitList:
    """A handler that has never failed has no circuit."""
    async with gateway.connection() as conn:
        return CircuitList(circuits=[CircuitView.of(circuit) for circuit in await circuits.read(conn)])


@router.post("/{handler}/close", summary="Close the circuit of a handler", responses=problem_responses(404))
async def close_circuit(
    gateway: TheGateway,
    principal: ThePrincipal,
    handler: Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")],
) -> CircuitView:
    """Lets the handler's tasks begin again. Tasks that were put off begin at the time to which they were put off. If
    the cause remains, new failures open the circuit again."""
    async with gateway.connection() as conn, conn.transaction():
        circuit = await circuits.close(conn, handler)
        if circuit is None:
            raise NotFoundError(f"the handler '{handler}' has no circuit", remedy=LIST_CIRCUITS.http)
        await operator_audit.add(conn, OperatorAction.CIRCUIT_CLOSED, handler, principal.subject)
    return CircuitView.of(circuit)
