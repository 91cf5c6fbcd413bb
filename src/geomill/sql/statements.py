"""The names of all statements in `queries/*.sql`, for mypy and for text search.

Written by script/schema from the files: do not edit.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, LiteralString, overload

from geomill.sql.files import Statements


class AssetsStatements(Statements):
    noun = "assets"

    any_asset: LiteralString
    await_request: LiteralString
    collection: LiteralString
    create: LiteralString
    create_collection: LiteralString
    decide: LiteralString
    get: LiteralString
    identified_assets: LiteralString
    identify: LiteralString
    item_ids: LiteralString
    jobs: LiteralString
    lock: LiteralString
    log_revision: LiteralString
    open_jobs: LiteralString
    open_revision: LiteralString
    page: LiteralString
    revision: LiteralString
    revisions: LiteralString
    roll_back: LiteralString
    serialise: LiteralString
    waiting_for_review: LiteralString


class AttendanceStatements(Statements):
    noun = "attendance"

    give_up: LiteralString
    note: LiteralString
    put_aside: LiteralString
    queued: LiteralString
    recall: LiteralString
    unserved: LiteralString
    waits: LiteralString


class AuditStatements(Statements):
    noun = "audit"

    add: LiteralString
    of_asset: LiteralString
    reviews: LiteralString


class BackupStatements(Statements):
    noun = "backup"

    add_primary_key: LiteralString
    analyze: LiteralString
    begin_snapshot: LiteralString
    clear_incoming: LiteralString
    collection_documents: LiteralString
    collections_in: LiteralString
    collections_out: LiteralString
    comment_column: LiteralString
    comment_table: LiteralString
    compare_items: LiteralString
    copy_in: LiteralString
    copy_out: LiteralString
    count_rows: LiteralString
    create_index: LiteralString
    create_schema: LiteralString
    create_table: LiteralString
    delete_rows: LiteralString
    disable_triggers: LiteralString
    enable_triggers: LiteralString
    feature_columns: LiteralString
    feature_indexes: LiteralString
    feature_table_there: LiteralString
    feature_tables: LiteralString
    hold_tables: LiteralString
    incoming_items: LiteralString
    items_in: LiteralString
    items_out: LiteralString
    message_sources: LiteralString
    moment: LiteralString
    name_now: LiteralString
    node_sources: LiteralString
    note_message_source: LiteralString
    note_node_source: LiteralString
    note_result_source: LiteralString
    open_collections: LiteralString
    open_incoming: LiteralString
    open_items: LiteralString
    open_jobs: LiteralString
    overdue_schedules: LiteralString
    postpone_schedule: LiteralString
    put_collections: LiteralString
    referenced_objects: LiteralString
    release_leases: LiteralString
    result_sources: LiteralString
    sequence_of: LiteralString
    sequence_value: LiteralString
    set_sequence: LiteralString
    source_containers: LiteralString
    table_size: LiteralString
    table_there: LiteralString


class CallbacksStatements(Statements):
    noun = "callbacks"

    claim: LiteralString
    find: LiteralString
    latest: LiteralString
    of_job: LiteralString
    page: LiteralString
    send_again: LiteralString
    settle: LiteralString


class CatalogueStatements(Statements):
    noun = "catalogue"

    add_primary_key: LiteralString
    analyze: LiteralString
    awaits_entry: LiteralString
    check: LiteralString
    clear_pending: LiteralString
    columns: LiteralString
    copy_in: LiteralString
    copy_incoming: LiteralString
    copy_out: LiteralString
    create_index: LiteralString
    create_schema: LiteralString
    create_table: LiteralString
    drop_strays: LiteralString
    drop_table: LiteralString
    due: LiteralString
    exported: LiteralString
    forget_pending: LiteralString
    hide_external: LiteralString
    hold_assets: LiteralString
    incoming: LiteralString
    incoming_plain: LiteralString
    indexes: LiteralString
    limit_waits: LiteralString
    lock_pending: LiteralString
    note_change: LiteralString
    overdue: LiteralString
    page_of_assets: LiteralString
    postpone: LiteralString
    put_external: LiteralString
    put_incoming: LiteralString
    schema_there: LiteralString
    shown_assets: LiteralString
    style_external: LiteralString
    try_collection: LiteralString
    write_items: LiteralString


class CheckpointsStatements(Statements):
    noun = "checkpoints"

    announce: LiteralString
    read: LiteralString
    save: LiteralString


class CircuitsStatements(Statements):
    noun = "circuits"

    close: LiteralString
    failed: LiteralString
    probe: LiteralString
    read: LiteralString
    succeeded: LiteralString


class DefinitionsStatements(Statements):
    noun = "definitions"

    get: LiteralString
    insert: LiteralString
    versions: LiteralString


class DutiesStatements(Statements):
    noun = "duties"

    report: LiteralString


class EventsStatements(Statements):
    noun = "events"

    after: LiteralString
    latest: LiteralString
    newest: LiteralString
    of_job: LiteralString


class ExtractsStatements(Statements):
    noun = "extracts"

    create: LiteralString
    figures: LiteralString
    get: LiteralString
    remove: LiteralString
    same: LiteralString
    serialise: LiteralString
    take_due: LiteralString
    work: LiteralString


class InboxStatements(Statements):
    noun = "inbox"

    command: LiteralString
    forward: LiteralString
    peek: LiteralString
    readdress: LiteralString
    readdress_strays: LiteralString
    settle: LiteralString


class InstancesStatements(Statements):
    noun = "instances"

    absent: LiteralString
    all: LiteralString
    beat: LiteralString
    forget: LiteralString
    heartbeat: LiteralString
    hold: LiteralString
    look: LiteralString
    note_handlers: LiteralString
    overview: LiteralString
    register: LiteralString
    remove: LiteralString
    served_elsewhere: LiteralString
    serving: LiteralString


class JobListsStatements(Statements):
    noun = "job_lists"

    counts: LiteralString
    edges: LiteralString
    histogram: LiteralString
    judgement: LiteralString
    newest: LiteralString
    newest_of_each_status: LiteralString
    newest_parked: LiteralString
    of_ids: LiteralString
    page: LiteralString
    waiting: LiteralString
    waiting_counts: LiteralString
    waiting_edges: LiteralString
    waiting_judgement: LiteralString
    waiting_page: LiteralString


class JobsStatements(Statements):
    noun = "jobs"

    by_idempotency_key: LiteralString
    ended: LiteralString
    get: LiteralString
    lock: LiteralString
    overdue: LiteralString
    owned: LiteralString
    park: LiteralString
    parked: LiteralString
    quarantine: LiteralString
    reclaim: LiteralString
    release: LiteralString
    release_parked: LiteralString
    reopen: LiteralString
    unlocked: LiteralString
    waiting: LiteralString


class KeysStatements(Statements):
    noun = "keys"

    all: LiteralString
    create: LiteralString
    find_many: LiteralString
    lock: LiteralString
    page: LiteralString
    read_write: LiteralString
    revoke: LiteralString
    revoke_id: LiteralString
    used: LiteralString


class LeftoversStatements(Statements):
    noun = "leftovers"

    alone: LiteralString
    deleted: LiteralString
    drop_tables: LiteralString
    due: LiteralString
    hold: LiteralString
    note: LiteralString
    settle: LiteralString


class LiveSchemaStatements(Statements):
    noun = "live_schema"

    columns: LiteralString
    constraints: LiteralString
    enums: LiteralString
    functions: LiteralString
    indexes: LiteralString
    qualify_names: LiteralString
    schemas: LiteralString
    tables: LiteralString
    triggers: LiteralString
    views: LiteralString


class LogsStatements(Statements):
    noun = "logs"

    edge: LiteralString
    examined: LiteralString
    insert: LiteralString
    latest: LiteralString
    of_job: LiteralString
    page: LiteralString


class MetricsStatements(Statements):
    noun = "metrics"

    active_jobs: LiteralString
    clock: LiteralString
    connections: LiteralString
    database_bytes: LiteralString
    dead_letters: LiteralString
    events: LiteralString
    horizon: LiteralString
    instances: LiteralString
    limit_time: LiteralString
    queues: LiteralString
    recent_jobs: LiteralString
    stuck_jobs: LiteralString


class MigrationStatements(Statements):
    noun = "migration"

    create_database: LiteralString
    drop_plans: LiteralString
    extensions: LiteralString
    fingerprint: LiteralString
    has_rows: LiteralString
    index_pgstac: LiteralString
    lock: LiteralString
    lock_holders: LiteralString
    lock_timeout: LiteralString
    pgstac_indexed: LiteralString
    pgstac_there: LiteralString
    pgstac_version: LiteralString
    read_committed: LiteralString
    set_fingerprint: LiteralString


class NodeViewsStatements(Statements):
    noun = "node_views"

    attempts: LiteralString
    checkpoint: LiteralString
    code_versions: LiteralString
    indexes_leased: LiteralString
    indexes_sent: LiteralString
    indexes_slowest: LiteralString
    indexes_with_status: LiteralString
    item_counts: LiteralString
    item_rows: LiteralString
    items: LiteralString
    message: LiteralString
    node: LiteralString
    sources: LiteralString


class NodesStatements(Statements):
    noun = "nodes"

    begin_anew: LiteralString
    discard: LiteralString
    item_outcomes: LiteralString
    of_job: LiteralString
    outcomes_page: LiteralString
    reopen: LiteralString
    results: LiteralString
    summary: LiteralString


class OperatorAuditStatements(Statements):
    noun = "operator_audit"

    add: LiteralString
    page: LiteralString


class OrdersStatements(Statements):
    noun = "orders"

    containers: LiteralString
    count_files: LiteralString
    drop_tables: LiteralString
    files: LiteralString
    hold: LiteralString
    tables: LiteralString


class ParkedStatements(Statements):
    noun = "parked"

    page: LiteralString


class PlatformsStatements(Statements):
    noun = "platforms"

    all: LiteralString
    create: LiteralString
    get: LiteralString
    lock: LiteralString
    update: LiteralString


class QueueStatements(Statements):
    noun = "queue"

    abandon: LiteralString
    acquit: LiteralString
    alone: LiteralString
    backend: LiteralString
    bury: LiteralString
    bury_leased: LiteralString
    chosen: LiteralString
    complete: LiteralString
    dead_letter: LiteralString
    dead_letter_once: LiteralString
    dead_letters: LiteralString
    defer: LiteralString
    discard: LiteralString
    disown: LiteralString
    end_session: LiteralString
    expire: LiteralString
    flush: LiteralString
    forget_refused: LiteralString
    forgive: LiteralString
    give_up: LiteralString
    hand_in: LiteralString
    head: LiteralString
    lapse: LiteralString
    leased: LiteralString
    leased_only: LiteralString
    leased_or_shared: LiteralString
    letter: LiteralString
    letter_queues: LiteralString
    letters_page: LiteralString
    line: LiteralString
    lines: LiteralString
    look: LiteralString
    lost: LiteralString
    message: LiteralString
    notify: LiteralString
    overview: LiteralString
    peek: LiteralString
    peek_page: LiteralString
    postpone: LiteralString
    precedents: LiteralString
    put_on_trial: LiteralString
    redrive: LiteralString
    refuse: LiteralString
    relaxed: LiteralString
    release: LiteralString
    renew: LiteralString
    report_progress: LiteralString
    running: LiteralString
    send: LiteralString
    take: LiteralString
    take_back: LiteralString
    this_session: LiteralString
    tried: LiteralString
    withdraw: LiteralString


class ReportsStatements(Statements):
    noun = "reports"

    exports: LiteralString
    failed: LiteralString
    load: LiteralString
    retried: LiteralString
    sla: LiteralString
    stuck: LiteralString


class RequestsStatements(Statements):
    noun = "requests"

    by_idempotency_key: LiteralString
    create: LiteralString
    failed_finally: LiteralString
    get: LiteralString
    lock: LiteralString
    of_asset: LiteralString
    replace: LiteralString
    retry: LiteralString
    supersede: LiteralString


class RetentionStatements(Statements):
    noun = "retention"

    delete_dead_letters: LiteralString
    delete_jobs: LiteralString
    delete_rows: LiteralString
    due: LiteralString
    finish: LiteralString
    mark: LiteralString
    release: LiteralString


class RolesStatements(Statements):
    noun = "roles"

    adopt: LiteralString
    close_database: LiteralString
    create_extension: LiteralString
    create_role: LiteralString
    database_there: LiteralString
    ensure_extension: LiteralString
    ensure_login: LiteralString
    ensure_role: LiteralString
    feature_tables_of_others: LiteralString
    feature_tables_unread: LiteralString
    grant_if_allowed: LiteralString
    grant_membership: LiteralString
    limit_statements: LiteralString
    may_compare: LiteralString
    missing_roles: LiteralString
    only_read: LiteralString
    open_database: LiteralString
    others_connected: LiteralString
    own_database: LiteralString
    pgstac_roles: LiteralString
    present_roles: LiteralString
    privileges: LiteralString
    put_stamp: LiteralString
    set_password: LiteralString
    set_search_path: LiteralString
    set_up_lock: LiteralString
    stamp: LiteralString
    table_privileges: LiteralString


class RoundsStatements(Statements):
    noun = "rounds"

    called: LiteralString
    claimed: LiteralString
    completed: LiteralString
    created: LiteralString
    decided: LiteralString
    fence: LiteralString
    inserted: LiteralString
    items: LiteralString
    limit_locks: LiteralString
    noted: LiteralString
    open_fence: LiteralString
    sent: LiteralString
    spread: LiteralString
    summarised: LiteralString
    taken: LiteralString
    unclaimed: LiteralString
    updated: LiteralString
    withdrawn: LiteralString


class SchedulesStatements(Statements):
    noun = "schedules"

    advance: LiteralString
    all: LiteralString
    change: LiteralString
    create: LiteralString
    delete: LiteralString
    due: LiteralString
    get: LiteralString
    jobs: LiteralString
    lock: LiteralString
    page: LiteralString
    set_paused: LiteralString
    still_open: LiteralString


class SchemaObjectsStatements(Statements):
    noun = "schema_objects"

    forget: LiteralString
    live: LiteralString
    record: LiteralString
    recorded: LiteralString
    there: LiteralString


class SchemaStepsStatements(Statements):
    noun = "schema_steps"

    applied: LiteralString
    record: LiteralString
    there: LiteralString


class ServingStatements(Statements):
    noun = "serving"

    external_find: LiteralString
    external_page: LiteralString
    external_scene: LiteralString
    external_scenes: LiteralString
    internal_find: LiteralString
    internal_page: LiteralString
    internal_public: LiteralString
    internal_scene: LiteralString
    internal_scenes: LiteralString
    job_result: LiteralString
    tables: LiteralString


class SessionsStatements(Statements):
    noun = "sessions"

    begin: LiteralString
    create_link: LiteralString
    end: LiteralString
    enter: LiteralString
    find_many: LiteralString
    rotate: LiteralString
    used: LiteralString


class StacStatements(Statements):
    noun = "stac"

    collections: LiteralString
    external_files: LiteralString
    files: LiteralString
    search: LiteralString
    version: LiteralString


class StageJobsStatements(Statements):
    noun = "stage_jobs"

    add: LiteralString
    alike: LiteralString
    attempts: LiteralString
    cancelled: LiteralString
    latest_run: LiteralString
    of_run: LiteralString
    page: LiteralString
    running: LiteralString
    serialise: LiteralString
    superseded: LiteralString
    tasks: LiteralString


class StorageStatements(Statements):
    noun = "storage"

    assets: LiteralString
    features: LiteralString
    zones: LiteralString


class StylesStatements(Statements):
    noun = "styles"

    book: LiteralString
    forget_default: LiteralString
    of_asset: LiteralString
    put: LiteralString
    remove: LiteralString


class TalliesStatements(Statements):
    noun = "tallies"

    add: LiteralString
    all: LiteralString


class UploadsStatements(Statements):
    noun = "uploads"

    claim: LiteralString
    complete: LiteralString
    create: LiteralString
    delete_parts: LiteralString
    due: LiteralString
    fail: LiteralString
    get: LiteralString
    learn: LiteralString
    lease: LiteralString
    lease_any: LiteralString
    needed_by: LiteralString
    note_error: LiteralString
    open_figures: LiteralString
    page: LiteralString
    parts: LiteralString
    progressed: LiteralString
    release: LiteralString
    remove: LiteralString
    renew: LiteralString
    restart: LiteralString
    save: LiteralString
    serialise: LiteralString


class VectorsStatements(Statements):
    noun = "vectors"

    abandoned: LiteralString
    add_key: LiteralString
    all_rows: LiteralString
    analyze: LiteralString
    chunk_outcome: LiteralString
    comment_column: LiteralString
    comment_table: LiteralString
    copy_rows: LiteralString
    drop_table: LiteralString
    enter_chunk: LiteralString
    index_geometries: LiteralString
    index_ids: LiteralString
    index_plain: LiteralString
    index_unique: LiteralString
    known_srid: LiteralString
    lock_staging: LiteralString
    lock_timeout: LiteralString
    make_ledger: LiteralString
    make_schemas: LiteralString
    make_staging: LiteralString
    map_shape: LiteralString
    map_shape_clipped: LiteralString
    move_to_geo: LiteralString
    note_chunk: LiteralString
    outcomes: LiteralString
    prepare_session: LiteralString
    prepare_to_finish: LiteralString
    rename: LiteralString
    rename_index: LiteralString
    repeated_ids: LiteralString
    schemas_there: LiteralString
    settle_storage: LiteralString
    tables_named: LiteralString
    tile: LiteralString


@overload
def queries(noun: Literal["assets"]) -> AssetsStatements: ...
@overload
def queries(noun: Literal["attendance"]) -> AttendanceStatements: ...
@overload
def queries(noun: Literal["audit"]) -> AuditStatements: ...
@overload
def queries(noun: Literal["backup"]) -> BackupStatements: ...
@overload
def queries(noun: Literal["callbacks"]) -> CallbacksStatements: ...
@overload
def queries(noun: Literal["catalogue"]) -> CatalogueStatements: ...
@overload
def queries(noun: Literal["checkpoints"]) -> CheckpointsStatements: ...
@overload
def queries(noun: Literal["circuits"]) -> CircuitsStatements: ...
@overload
def queries(noun: Literal["definitions"]) -> DefinitionsStatements: ...
@overload
def queries(noun: Literal["duties"]) -> DutiesStatements: ...
@overload
def queries(noun: Literal["events"]) -> EventsStatements: ...
@overload
def queries(noun: Literal["extracts"]) -> ExtractsStatements: ...
@overload
def queries(noun: Literal["inbox"]) -> InboxStatements: ...
@overload
def queries(noun: Literal["instances"]) -> InstancesStatements: ...
@overload
def queries(noun: Literal["job_lists"]) -> JobListsStatements: ...
@overload
def queries(noun: Literal["jobs"]) -> JobsStatements: ...
@overload
def queries(noun: Literal["keys"]) -> KeysStatements: ...
@overload
def queries(noun: Literal["leftovers"]) -> LeftoversStatements: ...
@overload
def queries(noun: Literal["live_schema"]) -> LiveSchemaStatements: ...
@overload
def queries(noun: Literal["logs"]) -> LogsStatements: ...
@overload
def queries(noun: Literal["metrics"]) -> MetricsStatements: ...
@overload
def queries(noun: Literal["migration"]) -> MigrationStatements: ...
@overload
def queries(noun: Literal["node_views"]) -> NodeViewsStatements: ...
@overload
def queries(noun: Literal["nodes"]) -> NodesStatements: ...
@overload
def queries(noun: Literal["operator_audit"]) -> OperatorAuditStatements: ...
@overload
def queries(noun: Literal["orders"]) -> OrdersStatements: ...
@overload
def queries(noun: Literal["parked"]) -> ParkedStatements: ...
@overload
def queries(noun: Literal["platforms"]) -> PlatformsStatements: ...
@overload
def queries(noun: Literal["queue"]) -> QueueStatements: ...
@overload
def queries(noun: Literal["reports"]) -> ReportsStatements: ...
@overload
def queries(noun: Literal["requests"]) -> RequestsStatements: ...
@overload
def queries(noun: Literal["retention"]) -> RetentionStatements: ...
@overload
def queries(noun: Literal["roles"]) -> RolesStatements: ...
@overload
def queries(noun: Literal["rounds"]) -> RoundsStatements: ...
@overload
def queries(noun: Literal["schedules"]) -> SchedulesStatements: ...
@overload
def queries(noun: Literal["schema_objects"]) -> SchemaObjectsStatements: ...
@overload
def queries(noun: Literal["schema_steps"]) -> SchemaStepsStatements: ...
@overload
def queries(noun: Literal["serving"]) -> ServingStatements: ...
@overload
def queries(noun: Literal["sessions"]) -> SessionsStatements: ...
@overload
def queries(noun: Literal["stac"]) -> StacStatements: ...
@overload
def queries(noun: Literal["stage_jobs"]) -> StageJobsStatements: ...
@overload
def queries(noun: Literal["storage"]) -> StorageStatements: ...
@overload
def queries(noun: Literal["styles"]) -> StylesStatements: ...
@overload
def queries(noun: Literal["tallies"]) -> TalliesStatements: ...
@overload
def queries(noun: Literal["uploads"]) -> UploadsStatements: ...
@overload
def queries(noun: Literal["vectors"]) -> VectorsStatements: ...
def queries(noun: str) -> Statements:
    """Returns the statements of `queries/<noun>.sql`, which is read at its first use: `queries("jobs").reopen`."""
    return _read(noun)


@cache
def _read(noun: str) -> Statements:
    return _CLASSES[noun]()


_CLASSES: dict[str, type[Statements]] = {
    "assets": AssetsStatements,
    "attendance": AttendanceStatements,
    "audit": AuditStatements,
    "backup": BackupStatements,
    "callbacks": CallbacksStatements,
    "catalogue": CatalogueStatements,
    "checkpoints": CheckpointsStatements,
    "circuits": CircuitsStatements,
    "definitions": DefinitionsStatements,
    "duties": DutiesStatements,
    "events": EventsStatements,
    "extracts": ExtractsStatements,
    "inbox": InboxStatements,
    "instances": InstancesStatements,
    "job_lists": JobListsStatements,
    "jobs": JobsStatements,
    "keys": KeysStatements,
    "leftovers": LeftoversStatements,
    "live_schema": LiveSchemaStatements,
    "logs": LogsStatements,
    "metrics": MetricsStatements,
    "migration": MigrationStatements,
    "node_views": NodeViewsStatements,
    "nodes": NodesStatements,
    "operator_audit": OperatorAuditStatements,
    "orders": OrdersStatements,
    "parked": ParkedStatements,
    "platforms": PlatformsStatements,
    "queue": QueueStatements,
    "reports": ReportsStatements,
    "requests": RequestsStatements,
    "retention": RetentionStatements,
    "roles": RolesStatements,
    "rounds": RoundsStatements,
    "schedules": SchedulesStatements,
    "schema_objects": SchemaObjectsStatements,
    "schema_steps": SchemaStepsStatements,
    "serving": ServingStatements,
    "sessions": SessionsStatements,
    "stac": StacStatements,
    "stage_jobs": StageJobsStatements,
    "storage": StorageStatements,
    "styles": StylesStatements,
    "tallies": TalliesStatements,
    "uploads": UploadsStatements,
    "vectors": VectorsStatements,
}
