"""The route that submits a job. It is kept short because it delays the start of a handler."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from geomill.api import lookup
from geomill.api.access import ThePrincipal, confirmed, principal_of
from geomill.api.gateway import Gateway, TheGateway, gateway_of
from geomill.api.problems import problem_responses
from geomill.contract.jobs import QUEUED, JobAccepted, JobSubmission
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.ids import id_of_key, new_id
from geomill.engine.submit import require_repetition, submit
from geomill.store import jobs as job_store
from geomill.store.pool import Connection

ACCEPTED = 202


class DirectRoute(APIRoute):
    """Passes a valid request straight to `submit_job`. FastAPI's own path takes a twentieth of the time from the
    request to the start of a handler. FastAPI still describes the route and answers invalid requests."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        ordinary = super().get_route_handler()

        async def direct(request: Request) -> Response:
            submission = await _read(request)
            if submission is None:
                return await ordinary(request)
            await confirmed(request)
            answer = Response(status_code=ACCEPTED, media_type="application/json")
            accepted = await submit_job(await gateway_of(request), await principal_of(request), submission, answer)
            answer.body = accepted.model_dump_json().encode()
            answer.headers["Content-Length"] = str(len(answer.body))
            return answer

        return direct


async def _read(request: Request) -> JobSubmission | None:
    """Return None if the body is not a valid submission. The normal route then explains why."""
    if request.headers.get("content-type") != "application/json":
        return None
    try:
        return JobSubmission.model_validate(json.loads(await request.body()))
    except (ValueError, RecursionError, ClientDisconnect):
        return None


router = APIRouter(prefix="/api/v1/jobs", responses=problem_responses(503), route_class=DirectRoute)


@router.post(
    "",
    status_code=ACCEPTED,
    tags=["jobs"],
    summary="Submit a job",
    responses={
        200: {"model": JobAccepted, "description": "The idempotency key already has a job"},
        **problem_responses(400, 404, 409, 413),
    },
)
async def submit_job(
    gateway: TheGateway, principal: ThePrincipal, submission: JobSubmission, response: Response
) -> JobAccepted:
    """The submitter comes from the credential; the body may name a person for whom it submits. Invalid inputs are
    refused before anything is stored. If the idempotency key already has a job for the same submission, the answer is
    200 with that job; for another submission it is 409."""
    key = submission.idempotency_key
    job_id = id_of_key(key) if key else new_id()
    terms = {
        "submitted_by": principal.subject,
        "on_behalf_of": principal.named(submission.on_behalf_of),
        "job_id": job_id,
        "message_id": job_id,
    }
    message = JobQueueMessage(**{**vars(submission), **terms})
    async with gateway.connection() as conn:
        if key and (first := await job_store.by_idempotency_key(conn, key)):
            require_repetition(gateway.workflow_registry, first, message)
            response.status_code = 200
            return JobAccepted.of(first, first.status.value)
        sent = await submit(conn, gateway.workflow_registry, gateway.job_queue, message)
        if key:
            sent = await _first_sent(conn, gateway, sent)
    response.headers["Location"] = f"/api/v1/jobs/{message.job_id}"
    return JobAccepted.of(sent, QUEUED)


async def _first_sent(conn: Connection, gateway: Gateway, sent: JobQueueMessage) -> JobQueueMessage:
    """Return the submission that has the key. If two come at once, the queue keeps one of them."""
    standing = await lookup.find(conn, gateway.job_queue, sent.job_id)
    if standing is None:
        return sent
    first = standing if isinstance(standing, JobQueueMessage) else standing.job
    require_repetition(gateway.workflow_registry, first, sent)
    return sent.model_copy(update={"submitted_at": first.submitted_at})
