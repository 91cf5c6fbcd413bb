"""Databases for tests: templates that one process makes for all, copies of them, and copies that are reused.

PostgreSQL takes 0.2 to 0.3 s to copy and drop a database, and a few milliseconds to empty one. `ReusedDatabase.clean`
brings a copy back to the content of its template: it deletes the rows that a test added, puts back the rows that it
changed or deleted, and resets the sequences. Where a test did more than that, such as a change of the schema or a
session that it left open, `clean` drops the copy and the next test gets a new one. No test has to say which it needs.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import psycopg
from psycopg.sql import SQL, Identifier

CLOSING_SECONDS = 1.0
"""How long the server may take to notice that a session was closed."""
MOST_BYTES = 4 * 1024 * 1024
"""A copy of which a table has grown beyond this is dropped: that is cheaper than deleting the rows."""
MOST_SEED_BYTES = 32 * 1024
"""A table that the migration fills with more than this is not filled again. The copy is dropped if it was changed."""
CATALOGS = """
    pg_attrdef pg_attribute pg_class pg_constraint pg_default_acl pg_enum pg_event_trigger pg_extension pg_index
    pg_largeobject pg_namespace pg_policy pg_proc pg_publication pg_rewrite pg_statistic pg_trigger pg_type
"""
"""A change of the schema, or ANALYZE, writes to one of these tables of the system."""
FINGERPRINT = "SELECT count(*), count(*) FILTER (WHERE age(xmin) < age('{last}'::xid)) FROM {catalog}"
"""How many rows there are, and how many of them are younger than a transaction."""
FINGERPRINTS = {
    "pg_catalog.pg_class": """
        SELECT count(*), sum(hashtext(ROW(
            oid, relname, relnamespace, relowner, relkind, relnatts, relchecks, relacl, reloptions, relpersistence,
            relrowsecurity, relforcerowsecurity, relreplident, relispopulated, reltablespace
        )::text)::bigint) FROM pg_class
    """,
    "pg_catalog.pg_namespace": FINGERPRINT + " WHERE nspname !~ '^pg_(toast_)?temp_'",
}
"""Other columns of pg_class say what was once so. The server makes schemas for temporary tables, and keeps them."""
TABLES = """
    SELECT c.oid::int, format('%%I.%%I', n.nspname, c.relname)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND (n.nspname !~ '^(pg_|information_schema)' OR c.oid = ANY (%s::regclass[]))
"""
SCHEMAS = "SELECT nspname FROM pg_namespace"
ALL_TABLES = "SELECT oid::int FROM pg_class WHERE relkind IN ('r', 'p')"
SEQUENCES = "SELECT oid::int, oid::regclass::text FROM pg_class WHERE relkind = 'S'"
STATE = """
    SELECT
        (SELECT count(*) FROM pg_stat_activity
         WHERE datid = d.oid AND backend_type = 'client backend' AND pid <> pg_backend_pid()),
        ARRAY(
            SELECT pg_stat_get_tuples_inserted(t) + pg_stat_get_tuples_updated(t) + pg_stat_get_tuples_deleted(t)
            FROM unnest(%(tables)s::int[]) WITH ORDINALITY AS u (t, n) ORDER BY n
        ),
        ARRAY(
            SELECT pg_sequence_last_value(s)
            FROM unnest(%(sequences)s::int[]) WITH ORDINALITY AS u (s, n) ORDER BY n
        ),
        d.xmin::text || ' ' || (SELECT count(*) FROM pg_db_role_setting WHERE setdatabase = d.oid)
    FROM pg_database AS d WHERE d.datname = current_database()
"""
"""A session writes its counters before it is gone from pg_stat_activity. They count what was rolled back too."""
SET_SEQUENCE = """
    SELECT setval(seqrelid, coalesce(%(value)s, seqstart), %(value)s::bigint IS NOT NULL)
    FROM pg_sequence WHERE seqrelid = %(name)s::regclass
"""
UNDO_ADDITIONS = """
    SELECT format('DROP SCHEMA %%I CASCADE', nspname) FROM pg_namespace
    WHERE nspname !~ '^pg_' AND nspname <> ALL (%(schemas)s)
    UNION ALL
    SELECT format('DROP TABLE IF EXISTS %%I.%%I CASCADE', n.nspname, c.relname)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND n.nspname !~ '^pg_' AND n.nspname = ANY (%(schemas)s)
        AND c.oid <> ALL (%(tables)s)
    UNION ALL
    SELECT format('REFRESH MATERIALIZED VIEW %%s', oid::regclass) FROM pg_class WHERE relkind = 'm'
"""
LARGER = "SELECT FROM unnest(%s::text[]::regclass[]) AS name WHERE pg_total_relation_size(name) > %s"
AS_NEW = "UPDATE pg_class SET relpages = 0, reltuples = -1 WHERE oid = ANY (%s::text[]::regclass[])"
"""The planner treats a table that was vacuumed when it was empty otherwise than a new one."""


Session = psycopg.Connection[Any]


class NotCleanError(Exception):
    """A test left more than rows behind."""


def url_of(server: str, database: str) -> str:
    return urlsplit(server)._replace(path=f"/{database}").geturl()


def use_cheap_password(server: str) -> None:
    """Keeps the password and lowers its cost: a client hashes it once for each session, and not 4096 times."""
    user, password = urlsplit(server).username or "", unquote(urlsplit(server).password or "")
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations=1)
    client_key, server_key = (hmac.digest(salted, name, "sha256") for name in (b"Client Key", b"Server Key"))
    parts = (b64encode(part).decode() for part in (salt, hashlib.sha256(client_key).digest(), server_key))
    verifier = "SCRAM-SHA-256$1:{}${}:{}".format(*parts)
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(SQL("ALTER ROLE {} PASSWORD {}").format(Identifier(user), verifier))


@contextmanager
def copied(server: str, template: str) -> Iterator[str]:
    """The URL of a new copy, which is dropped at the end."""
    name = f"geomill_test_{uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as admin:
        _create(admin, template, name)
        try:
            yield url_of(server, name)
        finally:
            _drop(admin, name)


def _create(admin: Session, template: str, name: str) -> None:
    query = SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
    admin.execute(query.format(Identifier(name), Identifier(template)))


def _drop(admin: Session, name: str) -> None:
    admin.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))


@dataclass(frozen=True)
class Templates:
    """Databases that are prepared once per test run. `folder` is the run's own: all its processes share it."""

    server: str
    folder: Path

    def get(self, kind: str, prepare: Callable[[str], None]) -> str:
        """The name of the template of this kind. The first process that asks prepares it, the others wait."""
        name = f"geomill_{kind}_{self.run}"
        with (self.folder / "templates.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with psycopg.connect(self.server, autocommit=True) as admin:
                if admin.execute("SELECT FROM pg_database WHERE datname = %s", (name,)).fetchone() is None:
                    self._make(admin, name, prepare)
        return name

    def _make(self, admin: Session, name: str, prepare: Callable[[str], None]) -> None:
        unfinished = f"{name}_unfinished"
        _drop(admin, unfinished)
        admin.execute(SQL("CREATE DATABASE {}").format(Identifier(unfinished)))
        prepare(url_of(self.server, unfinished))
        admin.execute(SQL("ALTER DATABASE {} RENAME TO {}").format(Identifier(unfinished), Identifier(name)))

    @property
    def run(self) -> str:
        return self.folder.name.rpartition("-")[2].lower()

    def drop(self) -> None:
        with psycopg.connect(self.server, autocommit=True) as admin:
            rows = admin.execute("SELECT datname FROM pg_database WHERE datname LIKE %s", (f"geomill_%_{self.run}%",))
            for (name,) in rows.fetchall():
                _drop(admin, name)


class ReusedDatabase:
    """A copy of a template that the tests of one process use, one after the other."""

    def __init__(self, server: str, template: str) -> None:
        self._server = server
        self._template = template
        self._layout: _Layout | None = None
        self._copy: _Copy | None = None

    def url(self) -> str:
        if self._copy is None:
            name = f"geomill_test_{uuid4().hex[:12]}"
            with psycopg.connect(self._server, autocommit=True) as admin:
                _create(admin, self._template, name)
            session = psycopg.connect(url_of(self._server, name), autocommit=True, application_name="tests: cleaning")
            self._layout = self._layout or _Layout.of(session)
            self._copy = _Copy(name, session, self._layout)
        return url_of(self._server, self._copy.name)

    def clean(self) -> None:
        """Makes the copy as it was, or drops it."""
        if self._copy is None:
            return
        try:
            self._copy.clean()
        except (NotCleanError, psycopg.Error):
            self.drop()

    def drop(self) -> None:
        if self._copy is not None:
            self._copy.session.close()
            with psycopg.connect(self._server, autocommit=True) as admin:
                _drop(admin, self._copy.name)
            self._copy = None


@dataclass(frozen=True)
class _Layout:
    """The objects in every copy of a template, by object identifier. The identifiers are the same in all copies."""

    schemas: list[str]
    all_tables: list[int]
    tables: dict[int, str]
    """Those that have rows of their own: tables of the system that `CATALOGS` names, and all others."""
    sequences: dict[int, str]
    seeds: dict[str, bytes]
    """The rows of the tables that can be emptied and filled again, as COPY writes them."""
    last_transaction: str
    catalogs: dict[str, Any]
    """The fingerprint of each of the system's tables."""

    @classmethod
    def of(cls, session: Session) -> _Layout:
        tables = dict(session.execute(TABLES, (CATALOGS.split(),)).fetchall())
        sequences = dict(session.execute(SEQUENCES).fetchall())
        (last,) = session.execute("SELECT pg_current_xact_id()::xid::text").fetchone() or ("",)
        catalogs = {
            name: _fingerprint(session, name, last) for name in tables.values() if name.startswith("pg_catalog.")
        }
        rows = {name: _read(session, name) for name in tables.values() if name not in catalogs}
        seeds = {name: text for name, text in rows.items() if len(text) <= MOST_SEED_BYTES}
        schemas = [name for (name,) in session.execute(SCHEMAS)]
        all_tables = [identifier for (identifier,) in session.execute(ALL_TABLES)]
        return cls(schemas, all_tables, tables, sequences, seeds, last, catalogs)


@dataclass(frozen=True)
class _State:
    """If a test changed anything, it changed one of these."""

    sessions: int
    written: list[int]
    """By table, how many rows were ever written."""
    last_values: list[int | None]
    """The last value of each sequence."""
    settings: str
    """The settings of the database."""


class _Copy:
    def __init__(self, name: str, session: Session, layout: _Layout) -> None:
        self.name = name
        self.session = session
        self._layout = layout
        self._clean = self._state()

    def clean(self) -> None:
        state = self._state_when_alone()
        if state.settings != self._clean.settings:
            raise NotCleanError("the settings of the database were changed")
        counts = zip(self._layout.tables.values(), self._clean.written, state.written, strict=True)
        written = {name for name, before, after in counts if before != after}
        if catalogs := written & self._layout.catalogs.keys():
            self._drop_added()
            self._require_same(catalogs)
        if tables := sorted(written - catalogs):
            self._restore(tables)
        values = zip(self._layout.sequences.values(), self._clean.last_values, state.last_values, strict=True)
        for name, before, after in values:
            if before != after:
                self.session.execute(SET_SEQUENCE, {"name": name, "value": before})
        self._clean = self._state()

    def _state_when_alone(self) -> _State:
        deadline = time.monotonic() + CLOSING_SECONDS
        while (state := self._state()).sessions:
            if time.monotonic() > deadline:
                raise NotCleanError("a session was left open")
            time.sleep(0.002)
        return state

    def _state(self) -> _State:
        identifiers = {"tables": list(self._layout.tables), "sequences": list(self._layout.sequences)}
        row = self.session.execute(STATE, identifiers, prepare=True).fetchone()
        assert row is not None
        return _State(*row)

    def _drop_added(self) -> None:
        """Drops the schemas and tables that a test added. Most of them are partitions of the catalogue."""
        layout = {"schemas": self._layout.schemas, "tables": self._layout.all_tables}
        statements = self.session.execute(UNDO_ADDITIONS, layout).fetchall()
        self.session.execute("; ".join(statement for (statement,) in statements).encode())

    def _require_same(self, catalogs: Iterable[str]) -> None:
        """A change that was rolled back, or a temporary table, writes to a catalog and leaves it as it was."""
        for name in catalogs:
            if _fingerprint(self.session, name, self._layout.last_transaction) != self._layout.catalogs[name]:
                raise NotCleanError(f"{name} was changed")

    def _restore(self, tables: list[str]) -> None:
        """Empties tables and fills them again, without a trace: triggers do not fire, and nothing is left to vacuum."""
        for name in tables:
            if name not in self._layout.seeds:
                raise NotCleanError(f"{name} was changed")
        if self.session.execute(LARGER, (tables, MOST_BYTES)).fetchone() is not None:
            raise NotCleanError("a table has grown too large")
        deletes = "".join(f"DELETE FROM {name};" for name in tables)
        self.session.execute(f"BEGIN; SET LOCAL session_replication_role = replica; {deletes}".encode())
        for name in tables:
            if rows := self._layout.seeds[name]:
                _write(self.session, name, rows)
        self.session.execute("COMMIT")
        self.session.execute(f"VACUUM {', '.join(tables)}".encode())
        self.session.execute(AS_NEW, (tables,))
        self.session.execute("SELECT pg_stat_force_next_flush()")


def _fingerprint(session: Session, catalog: str, last_transaction: str) -> Any:
    query = FINGERPRINTS.get(catalog, FINGERPRINT).format(catalog=catalog, last=last_transaction)
    return session.execute(query.encode()).fetchone()


def _read(session: Session, table: str) -> bytes:
    with session.cursor().copy(f"COPY {table} TO STDOUT".encode()) as copy:
        return b"".join(bytes(part) for part in copy)


def _write(session: Session, table: str, rows: bytes) -> None:
    with session.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copy:
        copy.write(rows)
