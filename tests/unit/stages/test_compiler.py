"""A stage job is its hand-written graph: the same definition, and the same results."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geomill.domain.engine.decision import Outcome
from geomill.domain.engine.graph import compile_graph
from geomill.domain.engine.message import TASK_QUEUES
from geomill.domain.engine.run import RunState
from geomill.domain.engine.task import TaskReport
from geomill.domain.engine.workflow import FanOutNode
from geomill.domain.states import JobStatus
from geomill.errors import WorkflowError
from geomill.sdk.outcomes import ItemOutcome
from geomill.sdk.registry import load_handlers
from geomill.stages import StageTask
from geomill.stages.compiler import compile_job, graph_of
from geomill.stages.registration import MARK, StageJob, set_marks
from geomill.workflows.loader import load_text
from tests.unit.domain.engine.simulation import NOW
from tests.unit.stages.jobs import controller, job_of

INFO = load_handlers().info
STEP = "{{ inputs.job_id or job.job_id }}"


def handlers(job: StageJob) -> dict[str, Any]:
    class Target: ...

    set_marks(Target, job, __name__, isolated=False)
    return {**INFO, job.workflow_id: getattr(Target, MARK).info}


STAGES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "max_parallel_tasks": st.integers(1, 500),
            "timeout_minutes": st.integers(1, 600),
            "allow_partial": st.sampled_from([True, False, "5%", "3"]),
            "task_type": st.sampled_from(["echo", "sleep", "hello_world"]),
            "queue": st.sampled_from(TASK_QUEUES),
            "single": st.booleans(),
            "circuit_breaker": st.sampled_from([None, {"failures": 3, "open_seconds": 9.0}]),
            "retry": st.builds(lambda count: {"max_attempts": count}, st.integers(1, 9)),
        },
    ),
    min_size=1,
    max_size=6,
)


def by_hand(stages: list[dict[str, Any]], limit: int | None) -> str:
    """The graph, as somebody would write it in YAML."""
    lines = ["workflow_id: stages.tried", f"name: tried, in {len(stages)} stage{'s' if len(stages) > 1 else ''}"]
    lines += [
        "inputs:",
        '  job_id: {type: string, required: false, description: "Id of the stage job; the job\'s own id by default"}',
        "  attempt: {type: integer, default: 1, minimum: 1, description: Number of the attempt at the stage job}",
        "  parameters: {type: object, default: {}, description: Parameters as the job type declares them}",
        "nodes:",
        "  START: {type: start, next: stage1_plan}",
    ]
    for number, stage in enumerate(stages, 1):
        lines += [*_step("plan", number, number - 1, f"stage{number}_tasks"), *_fan_out(number, stage, limit)]
        lines += [f"  stage{number}_results: {{type: fan_in, aggregation: count, next: stage{number}_aggregate}}"]
        following = f"stage{number + 1}_plan" if number < len(stages) else "END"
        lines += _step("aggregate", number, number, following)
    lines += ["  END: {type: end}", "outputs:"]
    numbers = range(1, len(stages) + 1)
    lines += [f'  stage_{number}: "{{{{ nodes.stage{number}_aggregate.output.result }}}}"' for number in numbers]
    return "\n".join(lines) + "\n"


def _step(action: str, number: int, tasks_of: int, following: str) -> list[str]:
    lines = [f"  stage{number}_{action}:", "    handler: stages.tried", "    params:", f"      action: {action}"]
    lines += [f"      stage: {number}", f'      job_id: "{STEP}"', '      attempt: "{{ inputs.attempt }}"']
    lines += ['      parameters: "{{ inputs.parameters }}"']
    if action == "plan" and number > 1:
        lines += ["      stage_results:"]
        lines += [
            f"        '{earlier}': \"{{{{ nodes.stage{earlier}_aggregate.output.result }}}}\""
            for earlier in range(1, number)
        ]
    if tasks_of:
        lines += ["      tasks:", f"        node_id: stage{tasks_of}_tasks"]
        lines += [f'        total: "{{{{ nodes.stage{tasks_of}_tasks.output.total }}}}"']
        lines += [f'        completed: "{{{{ nodes.stage{tasks_of}_results.output.count }}}}"']
        lines += [f'        indexes: "{{{{ nodes.stage{tasks_of}_plan.output.indexes }}}}"']
        looked = f'        hand_over: "{{{{ nodes.stage{tasks_of}_aggregate.output.hand_over }}}}"'
        lines += [looked] if action == "plan" else []
    return [*lines, f"    next: {following}"]


def _fan_out(number: int, stage: dict[str, Any], limit: int | None) -> list[str]:
    lines = [f"  stage{number}_tasks:", "    type: fan_out", f"    description: s{number}"]
    lines += [f'    source: "{{{{ nodes.stage{number}_plan.output.tasks }}}}"', "    task:"]
    lines += [f"      handler: {stage.get('task_type', 'echo')}", '      params: "{{ item }}"']
    lines += [f"      timeout_seconds: {stage.get('timeout_minutes', 30) * 60}"]
    lines += [f"      queue: {stage['queue']}"] if "queue" in stage else []
    lines += [f"      retry: {{max_attempts: {stage['retry']['max_attempts']}}}"] if "retry" in stage else []
    breaker = stage.get("circuit_breaker", {"failures": 10, "open_seconds": 30.0})
    lines += [f"      circuit_breaker: {breaker}".replace("'", "")] if breaker else []
    limits = [bound for bound in (stage.get("max_parallel_tasks"), limit) if bound]
    lines += [f"    max_parallel: {min(limits)}"] if limits else []
    partial = stage.get("allow_partial", False)
    wish = {True: "continue", False: "fail"}.get(partial, f"{{tolerate: '{partial}'}}")
    return [*lines, f"    on_failure: {wish}", f"    next: stage{number}_results"]


@settings(max_examples=150, deadline=None)
@given(STAGES, st.none() | st.integers(1, 100))
def test_any_stage_job_is_the_graph_that_one_would_write(stages: list[dict[str, Any]], limit: int | None) -> None:
    job = job_of(*stages, max_parallel_tasks=limit)
    registered = handlers(job)
    compiled = compile_job(job, handlers=registered, queues=TASK_QUEUES)
    written = load_text(by_hand(stages, limit), file="hand.yaml", handlers=registered, queues=TASK_QUEUES)
    assert compiled.body() == written.body()
    assert compiled.hash() == written.hash()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_a_compiled_job_gives_what_its_code_says_in_any_order(widths: list[int], chance: Any) -> None:
    """The compiled job, run through the evaluator with the controller's code, gives the results of a plain loop."""
    stage_controller = controller(
        lambda stage, context: [
            StageTask(
                {"value": sum(stage_result["sum"] for stage_result in context.stage_results.values()) + place},
                f"t{place}",
            )
            for place in range(widths[stage - 1])
        ],
        lambda stage, results: {"sum": sum(result.result_data["value"] for result in results), "stage": stage},
    )
    job = job_of(*({} for _ in widths), made_by=stage_controller)
    expected: dict[str, Any] = {}
    for number, width in enumerate(widths, 1):
        before = sum(stage_result["sum"] for stage_result in expected.values())
        expected[f"stage_{number}"] = {"sum": sum(before + place for place in range(width)), "stage": number}
    assert _played(job, chance) == expected


def _played(job: StageJob, chance: Any) -> Any:
    from geomill.domain.engine.evaluator import Evaluation
    from geomill.stages.steps import run_step
    from tests.unit.stages.test_steps import Pages, context

    run = RunState.begin(compile_graph(graph_of(job)), "r" * 36, {"job_id": "j" * 64, "attempt": 1, "parameters": {}})
    waiting: list[Any] = []
    outputs: dict[tuple[str, int], Any] = {}
    evaluation = Evaluation(run, NOW)
    evaluation.begin()
    while True:
        while aggregates := evaluation.take_aggregates():
            evaluation.feed([_counted(aggregate, outputs) for aggregate in aggregates])
        decision = evaluation.decision()
        waiting += decision.dispatches
        run.apply(decision)
        if run.status is not JobStatus.RUNNING:
            assert run.status is JobStatus.COMPLETED, decision.error
            return decision.result
        dispatch = waiting.pop(chance.randrange(len(waiting)))
        echoes = isinstance(run.graph.nodes[dispatch.node_id].definition, FanOutNode)
        pages = Pages(_outcomes(dispatch.params.get("tasks"), outputs))
        output = (
            dispatch.params
            if echoes
            else run_step("tried", job.definition, job.controller, context(dispatch.params, pages=pages))
        )
        outputs[dispatch.node_id, dispatch.item_index] = output
        evaluation = Evaluation(run, NOW)
        evaluation.feed(
            [Outcome(dispatch.node_id, dispatch.attempt, TaskReport.COMPLETED, dispatch.item_index, output)]
        )


def _counted(aggregate: Any, outputs: dict[tuple[str, int], Any]) -> Outcome:
    (source,) = aggregate.sources
    count = sum(node_id == source for node_id, _ in outputs)
    return Outcome(aggregate.node_id, aggregate.attempt, TaskReport.COMPLETED, output={"count": count})


def _outcomes(tasks: Any, outputs: dict[tuple[str, int], Any]) -> list[ItemOutcome]:
    source = tasks["node_id"] if isinstance(tasks, dict) else ""
    return [ItemOutcome(index, outputs[node_id, index]) for node_id, index in sorted(outputs) if node_id == source]


def test_a_task_type_that_is_not_there() -> None:
    job = job_of({"task_type": "ecko"})
    with pytest.raises(WorkflowError, match="the stage job 'tried' cannot run: there is no handler 'ecko'") as refused:
        compile_job(job, handlers=handlers(job), queues=TASK_QUEUES)
    assert refused.value.problems[0].where == "nodes.stage1_tasks.task.handler"


def test_the_graph_is_large_enough_for_the_most_stages() -> None:
    job = job_of(*({} for _ in range(100)))
    assert len(compile_job(job, handlers=handlers(job), queues=TASK_QUEUES).nodes) == 402
