"""The four calls of Data Factory's REST interface that an export needs.

Data Factory has no idempotency key. The caller passes an id of its own as a parameter, and looks for it among the runs
before it starts one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from geomill.datafactory.run import PipelineRun
from geomill.domain.assets.factory import FactoryPlace
from geomill.errors import DataFactoryRefused, DataFactoryUnavailable
from geomill.identity import tokens

API_VERSION = "2018-06-01"
TIMEOUT_SECONDS = 30.0
MOST_PAGES = 50
"""The most pages of runs that are read. One page has a hundred runs, and geomill starts far fewer in a week."""
LOOK_BACK = timedelta(days=8)
"""A run ends within seven days."""
LONGEST_REASON = 300
_PASSING = (httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_MANY_REQUESTS)
_ROLE = "give the identity of the workers the role Data Factory Contributor on the factory, and check its name"


class FactoryClient:
    def __init__(self, http: httpx.AsyncClient, place: FactoryPlace, client_id: str | None) -> None:
        self._http, self._place, self._client_id = http, place, client_id

    async def start(self, parameters: dict[str, Any]) -> str:
        """Start a run. Returns its id. After an error it is unknown whether a run has started."""
        answer = await self._call("POST", f"/pipelines/{self._place.pipeline}/createRun", body=parameters)
        return str(_field(answer, "runId"))

    async def run(self, run_id: str) -> PipelineRun:
        return _run(await self._call("GET", f"/pipelineruns/{run_id}"))

    async def cancel(self, run_id: str) -> None:
        await self._call("POST", f"/pipelineruns/{run_id}/cancel", isRecursive="true")

    async def runs(self, *export_ids: str) -> list[PipelineRun]:
        """Return the runs that have one of these ids, the earliest first. A run that was started a moment ago may be
        missing."""
        runs = [run async for run in self._recent() if run.export_id in export_ids]
        return sorted(runs, key=lambda run: (run.begun_at, run.run_id))

    async def runs_of_jobs(self, job_ids: list[str]) -> list[PipelineRun]:
        """Return the runs of all exports of these jobs."""
        return [run async for run in self._recent() if run.export_id.partition(".")[0] in job_ids]

    async def _recent(self) -> AsyncIterator[PipelineRun]:
        now = datetime.now(UTC)
        body: dict[str, Any] = {
            "lastUpdatedAfter": (now - LOOK_BACK).isoformat(),
            "lastUpdatedBefore": (now + timedelta(days=1)).isoformat(),
            "filters": [{"operand": "PipelineName", "operator": "Equals", "values": [self._place.pipeline]}],
        }
        for _ in range(MOST_PAGES):
            answer = await self._call("POST", "/queryPipelineRuns", body=body)
            for entry in _field(answer, "value"):
                yield _run(entry)
            if not (token := answer.get("continuationToken")):
                return
            body = {**body, "continuationToken": token}
        raise DataFactoryRefused(
            f"the pipeline '{self._place.pipeline}' has too many runs to look through",
            remedy="start this pipeline for nothing but exports",
        )

    async def _call(self, method: str, path: str, *, body: dict[str, Any] | None = None, **query: str) -> Any:
        access = await asyncio.to_thread(tokens.token, tokens.MANAGEMENT, self._client_id)
        try:
            answer = await self._http.request(
                method,
                f"{self._place.url}{self._place.factory}{path}",
                params={"api-version": API_VERSION, **query},
                json=body,
                headers={"Authorization": f"Bearer {access.text}"},
            )
        except httpx.HTTPError as error:
            raise DataFactoryUnavailable(f"Data Factory did not answer: {type(error).__name__}") from None
        return _content(answer)


@asynccontextmanager
async def factory_client(place: FactoryPlace, client_id: str | None) -> AsyncIterator[FactoryClient]:
    async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, follow_redirects=False) as http:
        yield FactoryClient(http, place, client_id)


def _content(answer: httpx.Response) -> Any:
    if answer.status_code in _PASSING or answer.is_server_error:
        raise DataFactoryUnavailable(f"Data Factory answered {answer.status_code}")
    if not answer.is_success:
        raise DataFactoryRefused(f"Data Factory answered {answer.status_code}: {_reason(answer)}", remedy=_ROLE)
    if not answer.content:
        return {}
    try:
        return answer.json()
    except ValueError:
        raise DataFactoryUnavailable("Data Factory's answer is not JSON") from None


def _reason(answer: httpx.Response) -> str:
    try:
        error = answer.json()["error"]
        return f"{error['code']}: {error['message']}"[:LONGEST_REASON]
    except (ValueError, KeyError, TypeError):
        return "it gave no reason"


def _field(answer: Any, name: str) -> Any:
    if not isinstance(answer, dict) or name not in answer:
        raise DataFactoryUnavailable(f"Data Factory's answer has no '{name}'")
    return answer[name]


def _run(entry: Any) -> PipelineRun:
    try:
        return PipelineRun.of(entry)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataFactoryUnavailable(f"Data Factory describes a run in an unknown way: {error}") from None
