"""The documentation is true: every key is in the reference, every example loads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from geomill.domain.engine.checks.fields import _CONDITIONAL, _FAN_IN, _FAN_OUT
from geomill.domain.engine.retry import RetryPolicy
from geomill.domain.engine.workflow import Branch, InputDefinition, TaskTemplate, Tolerate, Workflow
from geomill.sdk.registry import load_handlers
from geomill.workflows.loader import load_text
from geomill.workflows.schema_problems import NODE_TYPES
from tests.unit.workflows.samples import QUEUES

DOCS = Path(__file__).parents[3] / "docs"
REFERENCE = (DOCS / "reference" / "workflow-format.md").read_text()
PAGES = ("reference/workflow-format.md", "how-to/write-a-workflow.md")
MODELS = (Workflow, InputDefinition, TaskTemplate, RetryPolicy, Branch, Tolerate, *NODE_TYPES.values())

examples = [
    pytest.param(block, id=f"{page}:{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL))
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_is_in_the_reference(model: type[BaseModel]) -> None:
    assert [name for name in model.model_fields if not re.search(rf"`{name}\b", REFERENCE)] == []


def test_every_field_of_an_output_is_in_the_reference() -> None:
    for fields in (_FAN_OUT, _CONDITIONAL, *_FAN_IN.values()):
        assert [name for name in fields if f"`{name}`" not in REFERENCE] == []


@pytest.mark.parametrize("example", examples)
def test_every_example_loads(example: str) -> None:
    load_text(example, file="example.yaml", handlers=load_handlers().info, queues=QUEUES)
