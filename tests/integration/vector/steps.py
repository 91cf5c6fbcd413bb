"""Runs the steps of the workflow one after the other, without an engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.rows import dict_row

from geomill.datasets.intermediates import folder_of, mount
from geomill.handlers.vector.cleanup_staging import cleanup_staging
from geomill.handlers.vector.finish import finish
from geomill.handlers.vector.load_chunk import load_chunk
from geomill.handlers.vector.plan_chunks import plan_chunks
from geomill.handlers.vector.validate import validate
from geomill.sdk import Storage
from geomill.sdk.testing import HandlerRun, run_handler
from tests.integration.vector import sources


def ok(run: HandlerRun) -> dict[str, Any]:
    assert run.success, run.error
    output: dict[str, Any] = run.output
    return output


def copies(job_id: str) -> list[Path]:
    """Return the columnar copies of the job's source on this machine."""
    return list((mount() / folder_of(job_id)).glob("columns-*/data.parquet"))


@dataclass
class Steps:
    """Runs the steps of one job."""

    storage: Storage
    url: str
    job_id: str = field(default_factory=lambda: str(uuid4()))

    def run(self, handler: Any, params: dict[str, Any], **more: Any) -> HandlerRun:
        return run_handler(handler, params, storage=self.storage, database_url=self.url, job_id=self.job_id, **more)

    def validate(self, file_name: str, **options: Any) -> HandlerRun:
        return self.run(validate, {"container_name": sources.CONTAINER, "file_name": file_name, **options})

    def planned(self, file_name: str, chunk_rows: int | None = None, **options: Any) -> tuple[Any, Any]:
        self.validation = ok(self.validate(file_name, **options))
        inputs = {name: self.validation[name] for name in ("source", "reading", "facts", "rules", "bounds")}
        planning = ok(self.run(plan_chunks, {**inputs, "chunk_rows": chunk_rows}))
        return planning["plan"], planning["chunks"]

    def load(self, plan: Any, chunk: Any) -> HandlerRun:
        return self.run(load_chunk, {"plan": plan, "chunk": chunk})

    def finish(self, plan: Any, chunks: Any, table_name: str, **options: Any) -> HandlerRun:
        return self.run(finish, {"plan": plan, "chunks": len(chunks), "table_name": table_name, **options})

    def publish(self, file_name: str, table_name: str = "made_r1", **options: Any) -> dict[str, Any]:
        """Run all steps, as the workflow does. Return the output of `finish` with the warnings of all steps."""
        plan, chunks = self.planned(file_name, **options)
        for chunk in chunks:
            ok(self.load(plan, chunk))
        id_column = options.get("id_column")
        output = ok(self.finish(plan, chunks, table_name, id_column=id_column))
        ok(self.run(cleanup_staging, {"job_id": self.job_id}))
        return {**output, "warnings": [*self.validation["warnings"], *output["warnings"]]}

    def rows(self, query: str) -> list[dict[str, Any]]:
        with psycopg.connect(self.url, row_factory=dict_row) as conn:
            return conn.execute(query).fetchall()  # type: ignore[arg-type]

    def tables(self, schema: str = "geo") -> set[str]:
        rows = self.rows(
            f"SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('{schema}') AND relkind = 'r'"
        )
        return {row["relname"] for row in rows}
