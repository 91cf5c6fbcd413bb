from __future__ import annotations

from pathlib import Path

import pytest

from geomill.domain.engine.job import Job
from geomill.domain.engine.message import QueueMessage
from geomill.domain.engine.node import NodeState
from geomill.domain.entity import Entity, Key
from geomill.domain.states import NODE_MACHINE, NodeStatus
from geomill.domain.tables import TABLES
from geomill.sql import schema_sql
from geomill.store.ddl import create_table, ddl, schema_text
from geomill.store.describe import describe, table_name
from geomill.store.diff import widens
from geomill.store.quoting import column_list, identifier, literal, qualified

DOCS = Path(__file__).parents[3] / "docs"


def statements_of(model) -> list[str]:
    return list(create_table(describe([model]).tables[table_name(model)]))


def test_the_committed_schema_is_fresh():
    assert schema_sql() == schema_text(), "run script/schema"


@pytest.mark.parametrize("model", TABLES, ids=lambda model: model.__name__)
def test_every_table_has_its_fields_and_what_it_names(model):
    create, *rest = statements_of(model)
    text = "\n".join(rest)
    assert create.startswith(f"CREATE TABLE {table_name(model)} (\n")
    for name, field in model.model_fields.items():
        assert f"\n    {name} " in create
        assert (f"COMMENT ON COLUMN {table_name(model)}.{name} IS " in text) is (field.description is not None)
    assert f"_pkey PRIMARY KEY ({', '.join(model.__sql_primary_key__)})" in create
    for index in model.__sql_indexes__:
        assert f"INDEX {index.name} ON {table_name(model)} USING {index.method} (" in text
    for check in model.__sql_checks__:
        assert f"CONSTRAINT {check.name} CHECK ({check.expression})" in create


def test_tables_come_after_what_they_refer_to():
    earlier: set[str] = set()
    for model in TABLES:
        earlier.add(f"{model.__sql_schema__}.{model.__sql_table__}")
        assert {foreign.table for foreign in model.__sql_foreign_keys__} <= earlier


def test_types_and_functions_come_before_tables():
    kinds = [statement.split()[1] for statement in ddl() if statement.startswith("CREATE ")]
    assert kinds[0] == "SCHEMA"
    assert kinds.index("TYPE") < kinds.index("OR") < kinds.index("TABLE")


def test_names_of_things_are_unique_in_their_schema():
    names = [index.name for model in TABLES for index in model.__sql_indexes__]
    assert len(names) == len(set(names))


def test_details_of_the_jobs_table():
    create, *rest = statements_of(Job)
    assert create.endswith(") WITH (fillfactor = 70)")
    assert (
        "CONSTRAINT dag_jobs_definition_hash_fkey FOREIGN KEY (definition_hash)"
        " REFERENCES dagapp.dag_definitions (definition_hash) ON DELETE RESTRICT"
    ) in create
    assert (
        "CREATE UNIQUE INDEX idx_dag_jobs_idempotency ON dagapp.dag_jobs USING btree (idempotency_key)"
        " WHERE idempotency_key IS NOT NULL"
    ) in rest
    assert "CREATE INDEX idx_dag_jobs_created ON dagapp.dag_jobs USING btree (created_at DESC)" in rest
    assert "COMMENT ON COLUMN dagapp.dag_jobs.result_data IS 'The evaluated outputs of the workflow'" in rest


def test_the_docstring_of_a_model_becomes_the_comment_and_the_base_s_does_not():
    comment = (
        "A waiting or leased message. The table is hot: rows are inserted, leased and deleted within milliseconds."
    )
    assert f"COMMENT ON TABLE dagapp.dag_queue IS '{comment}'" in statements_of(QueueMessage)
    assert not [statement for statement in statements_of(Job) if statement.startswith("COMMENT ON TABLE")]


def test_only_the_first_paragraph_on_one_line():
    class Long(Entity):
        """First line
        and the second.

        Another paragraph."""

        __sql_table__ = "long"
        __sql_primary_key__ = ("id",)
        id: Key

    assert "COMMENT ON TABLE dagapp.long IS 'First line and the second.'" in statements_of(Long)


def test_the_trigger_says_what_the_machine_says():
    (trigger,) = describe([NodeState]).tables["dagapp.dag_node_states"].triggers.values()
    text = " ".join(trigger.definition.split())
    assert text.startswith(
        "CREATE OR REPLACE TRIGGER dag_node_states_status_transitions AFTER UPDATE OF status"
        " ON dagapp.dag_node_states FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status AND NOT ("
    )
    for source in NodeStatus:
        targets = [f"'{target}'" for target in NodeStatus if target in NODE_MACHINE.commits[source]]
        rule = f"(OLD.status = '{source}' AND NEW.status IN ({', '.join(targets)}))"
        assert (rule in text) is bool(targets), source
    assert text.endswith("EXECUTE FUNCTION dagapp.refuse_transition('status')")


def test_a_prefix_moves_everything():
    text = ";".join(ddl(TABLES, "scratch_"))
    assert "scratch_dagapp.dag_jobs" in text
    assert "dagapp." not in text.replace("scratch_dagapp.", "")


@pytest.mark.parametrize(
    ("name", "quoted"),
    [("job_id", "job_id"), ("order", '"order"'), ("Mixed", '"Mixed"'), ('a"b', '"a""b"'), ("1st", '"1st"')],
)
def test_identifiers_are_quoted_where_they_must_be(name, quoted):
    assert identifier(name) == quoted


@pytest.mark.parametrize("name", ["", "x" * 64, "ü" * 32, "a\0b"])
def test_what_postgresql_would_cut_or_refuse_is_no_identifier(name):
    with pytest.raises(ValueError, match="cannot name anything"):
        identifier(name)


def test_quoting_in_company():
    assert qualified("lab", "user") == 'lab."user"'
    assert column_list(("a", "end")) == 'a, "end"'
    assert literal("'; DROP TABLE x; --") == "'''; DROP TABLE x; --'"


@pytest.mark.parametrize(
    ("old", "new", "wider"),
    [
        ("character varying(9)", "character varying(10)", True),
        ("character varying(10)", "character varying(9)", False),
        ("character varying(9)", "text", True),
        ("character varying(9)", "character varying", True),
        ("text", "character varying(9)", False),
        ("integer", "bigint", False),
        ("character varying(9)", "integer", False),
    ],
)
def test_widening(old, new, wider):
    assert widens(old, new) is wider


@pytest.mark.parametrize("model", TABLES, ids=lambda model: model.__name__)
def test_every_table_is_in_the_reference(model):
    assert f"`{model.__sql_table__}`" in (DOCS / "reference" / "schema.md").read_text(encoding="utf-8")
