"""The SQL of the project: plain statements in `queries/<noun>.sql`, each under a line `-- name: claim_messages`.

They ship with the code that runs them. `queries("jobs").reopen` is the statement `reopen` of `queries/jobs.sql`.
`statements.py` declares every name, so mypy refuses one that does not exist, and a text search finds all uses.
`script/schema` writes `statements.py` from the files and `schema.sql` from the models.

A statement that returns whole rows says `{columns of dagapp.dag_jobs}`, or `{columns of dagapp.dag_jobs as j}`, where
others say `*`: the columns of the model, by name. A column that a newer release adds then changes nothing for a process
that runs. With `*` it would change the result, and PostgreSQL refuses to go on with a prepared plan that does. Lists of
some columns, for INSERT and `json_to_recordset`, are defined once in a file: `columns.py` says how.
"""

from __future__ import annotations

from geomill.sql.files import function_sql, schema_sql, step_files, view_sql
from geomill.sql.statements import queries

__all__ = ["function_sql", "queries", "schema_sql", "step_files", "view_sql"]
