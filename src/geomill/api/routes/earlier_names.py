"""Routes under the names of the earlier system. Each is another name of a route of today, with the same access."""

from __future__ import annotations

from fastapi import APIRouter

from geomill.api.problems import problem_responses
from geomill.api.routes.platform import SUBMITTED, get_status, submit_data

router = APIRouter(prefix="/platform", tags=["platform"], responses=problem_responses(503), deprecated=True)

router.add_api_route(
    "/submit_dag",
    submit_data,
    methods=["POST"],
    status_code=202,
    operation_id="submit_dag",
    summary="Another name of POST /api/platform/submit",
    responses=SUBMITTED,
)
router.add_api_route(
    "/dag_status/{identifier}",
    get_status,
    methods=["GET"],
    operation_id="dag_status",
    summary="Another name of GET /api/platform/status/{identifier}",
    responses=problem_responses(404),
)
