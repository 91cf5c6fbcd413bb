"""Workflows over HTTP: their files, versions and differences, and the check of a text."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from httpx import AsyncClient

from geomill.contract.workflows import LONGEST_TEXT
from geomill.domain.engine.message import TASK_QUEUES
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.api.conftest import SLOW
from tests.integration.api.desk import problem
from tests.integration.api.test_jobs import submit, until
from tests.integration.engine.platform import handlers_of, registry_of

WORKFLOWS = "/api/v1/workflows"
VALIDATE = f"{WORKFLOWS}/validate"
CHANGED = SLOW.replace("default: 30", "default: 31").replace(
    "next: END}\n", "next: more}\n  more: {type: task, handler: sleep, params: {duration_seconds: 0}, next: END}\n"
)


async def test_the_versions_that_jobs_have_had_and_their_difference(make_platform: Any, make_client: Any) -> None:
    platform = make_platform()
    platform.orchestrator()
    platform.worker()
    client = await make_client(platform)
    hashes = []
    for text in (SLOW, CHANGED):
        workflow = registry_of(platform.registry, text).get("slow")
        platform.workflow_registry._workflows["slow"] = workflow
        hashes.append(workflow.hash())
        accepted = await submit(client, workflow_id="slow", input_params={"seconds": 0})
        await until(client, accepted["job_id"], "completed")
    page = (await client.get(f"{WORKFLOWS}/slow/versions", params={"limit": 1})).json()
    rest = (await client.get(f"{WORKFLOWS}/slow/versions", params={"cursor": page["next_cursor"]})).json()
    versions = page["versions"] + rest["versions"]
    assert [version["definition_hash"] for version in versions] == hashes[::-1]
    assert [(version["current"], version["recent_jobs"]) for version in versions] == [(True, 1), (False, 1)]
    for options in ({"from": hashes[0], "to": hashes[1]}, {"from": hashes[0]}):
        different = (await client.get(f"{WORKFLOWS}/slow/difference", params=options)).json()
        assert (different["added"], different["removed"], different["changed"]) == (["more"], [], ["nap"])
        assert different["other"] == ["inputs"]
        assert "-    default: 30" in different["diff"].splitlines()
        assert "+    default: 31" in different["diff"].splitlines()
    same = (await client.get(f"{WORKFLOWS}/slow/difference", params={"from": hashes[1]})).json()
    assert (same["diff"], same["changed"]) == ("", [])
    foreign = await client.get(f"{WORKFLOWS}/hello_world/difference", params={"from": hashes[0]})
    problem(foreign, 404, "not_found")
    problem(await client.get(f"{WORKFLOWS}/slow/difference", params={"from": "x"}), 422, "invalid_input")
    problem(await client.get(f"{WORKFLOWS}/slow/difference"), 422, "invalid_input")
    problem(await client.get(f"{WORKFLOWS}/slo/versions"), 404, "not_found")
    assert (await client.get(f"{WORKFLOWS}/echo_test/versions")).json() == {"versions": [], "next_cursor": None}


async def test_the_source_is_the_file_with_its_comments(make_platform: Any, make_client: Any) -> None:
    platform = make_platform()
    files = WorkflowRegistry.load([], handlers=handlers_of().info, queues=TASK_QUEUES)
    platform.workflow_registry = files.joined(registry_of(platform.registry, SLOW).all())
    client = await make_client(platform)
    answer = await client.get(f"{WORKFLOWS}/hello_world/source")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert "workflow_id: hello_world" in answer.text
    assert "#" in answer.text
    problem(await client.get(f"{WORKFLOWS}/slow/source"), 404, "not_found")
    problem(await client.get(f"{WORKFLOWS}/nothing/source"), 404, "not_found")


async def test_a_valid_text_is_stored_nowhere(idle: AsyncClient) -> None:
    check = (await idle.post(VALIDATE, json={"text": SLOW})).json()
    assert (check["valid"], check["workflow_id"], check["problems"]) == (True, "slow", [])
    assert check["mermaid"].startswith("flowchart")
    assert len(check["definition_hash"]) == 64
    problem(await idle.get(f"{WORKFLOWS}/slow"), 404, "not_found")


async def test_every_problem_with_its_line_and_a_hint(idle: AsyncClient) -> None:
    shape = (await idle.post(VALIDATE, json={"text": SLOW.replace("{type: number", "{type: numbr")})).json()
    assert (shape["valid"], shape["problems"][0]["line"]) == (False, 4)
    text = SLOW.replace("handler: sleep", "handler: sleeep").replace("next: nap", "next: snap")
    meaning = (await idle.post(VALIDATE, json={"text": text})).json()
    assert [problem["line"] for problem in meaning["problems"]] == sorted([6, 7, 7][: meaning["problem_count"]])
    assert "did you mean 'sleep'?" in [problem["hint"] for problem in meaning["problems"]]


HEAD = "workflow_id: w\nname: n\nnodes:\n  START: {type: start, next: a}\n"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(8)
)
HOSTILE = {
    "aliases": BOMB,
    "depth": "a: " + "[" * 90_000,
    "keys": "{" * 90_000,
    "problems": "nodes:\n" + "".join(f"  n{n}: {{type: nope}}\n" for n in range(9_000)),
    "nodes": HEAD + "".join(f"  n{n}: {{type: task, handler: echo, next: n{n + 1}}}\n" for n in range(3_600)),
    "templates": HEAD + '  a: {type: task, handler: echo, params: {x: "' + "{{ a }}" * 28_000 + '"}, next: END}\n',
    "brackets": HEAD + '  a: {type: task, handler: echo, params: {x: "{{ ' + "(" * 99_000 + ' }}"}, next: END}\n',
    "tag": "!!python/object/apply:os.system ['true']",
    "surrogate": 'a: "\\ud800"',
    "nothing": "",
}


@pytest.mark.parametrize("name", list(HOSTILE))
async def test_a_hostile_text_is_refused_cheaply(idle: AsyncClient, name: str) -> None:
    text = HOSTILE[name]
    assert len(text) <= LONGEST_TEXT
    begun = time.process_time()
    answer = await idle.post(VALIDATE, json={"text": text})
    assert (answer.status_code, answer.json()["valid"]) == (200, False), answer.text[:500]
    assert 1 <= len(answer.json()["problems"]) <= 200
    assert time.process_time() - begun < 5


async def test_a_text_that_is_too_long_or_no_text(idle: AsyncClient) -> None:
    for body in ({"text": "x" * (LONGEST_TEXT + 1)}, {"text": 7}, {}):
        problem(await idle.post(VALIDATE, json=body), 422, "invalid_input")


async def test_few_callers_wait_for_a_check_and_the_others_are_refused(idle: AsyncClient) -> None:
    slow = {"text": HOSTILE["problems"]}
    answers = await asyncio.gather(*(idle.post(VALIDATE, json=slow) for _ in range(12)))
    assert sorted(answer.status_code for answer in answers) == [200] * 8 + [429] * 4
    assert (await idle.post(VALIDATE, json={"text": SLOW})).json()["valid"] is True
