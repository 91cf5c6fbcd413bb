-- The schema of geomill.
--
-- Generated from the models in geomill.domain; do not edit; run script/schema.
-- `geomill db migrate` brings a database to it. Statuses change only as the state machines allow: the triggers
-- named *_transitions refuse anything else with SQLSTATE GM001.

CREATE EXTENSION IF NOT EXISTS postgis;

CREATE SCHEMA IF NOT EXISTS dagapp;

CREATE TYPE dagapp.job_status AS ENUM ('pending', 'running', 'completed', 'failed', 'cancelled');

CREATE TYPE dagapp.node_status AS ENUM ('pending', 'ready', 'dispatched', 'running', 'completed', 'failed', 'skipped', 'cancelled');

CREATE TYPE dagapp.task_status AS ENUM ('completed', 'failed');

CREATE TYPE dagapp.report AS ENUM ('running', 'completed', 'failed', 'abandoned', 'cancel', 'pause', 'resume');

CREATE TYPE dagapp.event_type AS ENUM ('job_created', 'job_started', 'job_completed', 'job_failed', 'job_cancelled', 'job_paused', 'job_resumed', 'job_retried', 'job_reclaimed', 'node_dispatched', 'node_completed', 'node_failed', 'node_retried', 'node_skipped', 'node_cancelled', 'fan_out_expanded', 'checkpoint_saved', 'result_stale', 'callback_delivered', 'callback_failed');

CREATE TYPE dagapp.event_status AS ENUM ('info', 'success', 'warning', 'failure');

CREATE TYPE dagapp.instance_role AS ENUM ('orchestrator', 'worker');

CREATE TYPE dagapp.catch_up AS ENUM ('skip', 'last', 'all');

CREATE TYPE dagapp.callback_status AS ENUM ('pending', 'delivered', 'given_up');

CREATE OR REPLACE FUNCTION dagapp.refuse_transition() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    RAISE EXCEPTION USING
        ERRCODE = 'GM001',
        MESSAGE = format('%I.%I: %s cannot go from %s to %s', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_ARGV[0],
                         to_jsonb(OLD) ->> TG_ARGV[0], to_jsonb(NEW) ->> TG_ARGV[0]),
        SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, COLUMN = TG_ARGV[0];
END
$$;

CREATE TABLE dagapp.dag_definitions (
    definition_hash varchar(64) NOT NULL,
    workflow_id varchar(64) NOT NULL,
    version integer NOT NULL,
    body json NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_definitions_pkey PRIMARY KEY (definition_hash)
);

CREATE INDEX idx_dag_definitions_workflow ON dagapp.dag_definitions USING btree (workflow_id, version DESC);

COMMENT ON COLUMN dagapp.dag_definitions.definition_hash IS 'SHA-256 of the canonical JSON of the body';

COMMENT ON COLUMN dagapp.dag_definitions.body IS 'The whole definition; json keeps the order of nodes';

CREATE TABLE dagapp.dag_jobs (
    job_id varchar(64) NOT NULL,
    workflow_id varchar(64) NOT NULL,
    workflow_version integer,
    definition_hash varchar(64),
    status dagapp.job_status DEFAULT 'pending' NOT NULL,
    input_params jsonb DEFAULT '{}'::jsonb NOT NULL,
    result_data jsonb,
    error_message text,
    failed_node_id varchar(64),
    owner_id varchar(64),
    owner_epoch bigint DEFAULT 0 NOT NULL,
    owner_heartbeat_at timestamptz,
    priority smallint DEFAULT 0 NOT NULL,
    correlation_id varchar(64),
    submitted_by varchar(64),
    callback_url varchar(512),
    idempotency_key varchar(64),
    paused_at timestamptz,
    deadline_at timestamptz,
    run_number integer DEFAULT 1 NOT NULL,
    called_back_run integer DEFAULT 0 NOT NULL,
    submitted_at timestamptz DEFAULT now() NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    started_at timestamptz,
    completed_at timestamptz,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_jobs_pkey PRIMARY KEY (job_id),
    CONSTRAINT dag_jobs_completed_at CHECK ((status IN ('completed', 'failed', 'cancelled')) = (completed_at IS NOT NULL)),
    CONSTRAINT dag_jobs_started_at CHECK (status <> 'running' OR started_at IS NOT NULL),
    CONSTRAINT dag_jobs_pinned CHECK (definition_hash IS NOT NULL OR status IN ('failed', 'cancelled')),
    CONSTRAINT dag_jobs_priority CHECK (priority BETWEEN 0 AND 10),
    CONSTRAINT dag_jobs_definition_hash_fkey FOREIGN KEY (definition_hash) REFERENCES dagapp.dag_definitions (definition_hash) ON DELETE RESTRICT
) WITH (fillfactor = 70);

CREATE INDEX idx_dag_jobs_status ON dagapp.dag_jobs USING btree (status, created_at DESC);

CREATE INDEX idx_dag_jobs_workflow ON dagapp.dag_jobs USING btree (workflow_id, created_at DESC);

CREATE INDEX idx_dag_jobs_created ON dagapp.dag_jobs USING btree (created_at DESC);

CREATE INDEX idx_dag_jobs_owner ON dagapp.dag_jobs USING btree (owner_id) WHERE status IN ('pending', 'running');

CREATE INDEX idx_dag_jobs_deadline ON dagapp.dag_jobs USING btree (deadline_at) WHERE deadline_at IS NOT NULL AND completed_at IS NULL;

CREATE UNIQUE INDEX idx_dag_jobs_idempotency ON dagapp.dag_jobs USING btree (idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX idx_dag_jobs_correlation ON dagapp.dag_jobs USING btree (correlation_id) WHERE correlation_id IS NOT NULL;

CREATE INDEX idx_dag_jobs_callback ON dagapp.dag_jobs USING btree (completed_at) WHERE callback_url IS NOT NULL AND completed_at IS NOT NULL AND called_back_run < run_number;

CREATE OR REPLACE TRIGGER dag_jobs_status_transitions
    BEFORE UPDATE OF status ON dagapp.dag_jobs
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status AND NOT (
        (OLD.status = 'pending' AND NEW.status IN ('running', 'completed', 'failed', 'cancelled'))
        OR (OLD.status = 'running' AND NEW.status IN ('completed', 'failed', 'cancelled'))
        OR (OLD.status = 'failed' AND NEW.status IN ('running'))
        OR (OLD.status = 'cancelled' AND NEW.status IN ('running'))
    ))
    EXECUTE FUNCTION dagapp.refuse_transition('status');

COMMENT ON COLUMN dagapp.dag_jobs.job_id IS 'Given at the door: the submitter knows it before the job exists';

COMMENT ON COLUMN dagapp.dag_jobs.definition_hash IS 'The definition this job is pinned to; none if it was refused at the door';

COMMENT ON COLUMN dagapp.dag_jobs.input_params IS 'Validated inputs, defaults applied';

COMMENT ON COLUMN dagapp.dag_jobs.result_data IS 'What the workflow''s outputs evaluated to';

COMMENT ON COLUMN dagapp.dag_jobs.error_message IS 'Why the job failed, in one sentence';

COMMENT ON COLUMN dagapp.dag_jobs.owner_id IS 'Orchestrator instance that owns this job';

COMMENT ON COLUMN dagapp.dag_jobs.owner_epoch IS 'Fence: raised at every change of owner';

COMMENT ON COLUMN dagapp.dag_jobs.owner_heartbeat_at IS 'When the owner took it; the process itself beats in dag_instances';

COMMENT ON COLUMN dagapp.dag_jobs.priority IS 'Higher is sooner';

COMMENT ON COLUMN dagapp.dag_jobs.paused_at IS 'While set, nothing new is dispatched';

COMMENT ON COLUMN dagapp.dag_jobs.deadline_at IS 'The job fails if it has not ended by then';

COMMENT ON COLUMN dagapp.dag_jobs.run_number IS 'Raised by every retry of the whole job';

COMMENT ON COLUMN dagapp.dag_jobs.called_back_run IS 'The latest run whose end is in dag_callbacks';

CREATE TABLE dagapp.dag_node_states (
    job_id varchar(64) NOT NULL,
    node_id varchar(64) NOT NULL,
    item_index integer DEFAULT -1 NOT NULL,
    status dagapp.node_status DEFAULT 'pending' NOT NULL,
    task_id varchar(200),
    attempt bigint DEFAULT 0 NOT NULL,
    retry_count integer DEFAULT 0 NOT NULL,
    output jsonb,
    error_message text,
    worker_id varchar(64),
    not_before timestamptz,
    dispatched_at timestamptz,
    started_at timestamptz,
    completed_at timestamptz,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_node_states_pkey PRIMARY KEY (job_id, node_id, item_index),
    CONSTRAINT dag_node_states_completed_at CHECK ((status IN ('completed', 'failed', 'skipped', 'cancelled')) = (completed_at IS NOT NULL)),
    CONSTRAINT dag_node_states_dispatched_at CHECK (status NOT IN ('dispatched', 'running', 'cancelled') OR dispatched_at IS NOT NULL),
    CONSTRAINT dag_node_states_item_index CHECK (item_index >= -1),
    CONSTRAINT dag_node_states_job_id_fkey FOREIGN KEY (job_id) REFERENCES dagapp.dag_jobs (job_id) ON DELETE CASCADE
) WITH (fillfactor = 70);

CREATE OR REPLACE TRIGGER dag_node_states_status_transitions
    BEFORE UPDATE OF status ON dagapp.dag_node_states
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status AND NOT (
        (OLD.status = 'pending' AND NEW.status IN ('ready', 'dispatched', 'running', 'completed', 'failed', 'skipped', 'cancelled'))
        OR (OLD.status = 'ready' AND NEW.status IN ('dispatched', 'running', 'completed', 'failed', 'skipped', 'cancelled'))
        OR (OLD.status = 'dispatched' AND NEW.status IN ('ready', 'running', 'completed', 'failed', 'skipped', 'cancelled'))
        OR (OLD.status = 'running' AND NEW.status IN ('ready', 'dispatched', 'completed', 'failed', 'skipped', 'cancelled'))
        OR (OLD.status = 'failed' AND NEW.status IN ('pending', 'ready', 'dispatched', 'running', 'completed', 'skipped', 'cancelled'))
        OR (OLD.status = 'skipped' AND NEW.status IN ('pending'))
        OR (OLD.status = 'cancelled' AND NEW.status IN ('pending', 'ready', 'running'))
    ))
    EXECUTE FUNCTION dagapp.refuse_transition('status');

COMMENT ON COLUMN dagapp.dag_node_states.item_index IS '-1, or the position in the fan-out''s list';

COMMENT ON COLUMN dagapp.dag_node_states.task_id IS 'The current attempt';

COMMENT ON COLUMN dagapp.dag_node_states.attempt IS 'Token of the current attempt; only ever rises';

COMMENT ON COLUMN dagapp.dag_node_states.retry_count IS 'Attempts that counted against the retry policy';

COMMENT ON COLUMN dagapp.dag_node_states.output IS 'What the handler returned';

COMMENT ON COLUMN dagapp.dag_node_states.not_before IS 'A retry waits until then';

CREATE TABLE dagapp.dag_task_results (
    task_id varchar(200) NOT NULL,
    job_id varchar(64) NOT NULL,
    node_id varchar(64) NOT NULL,
    item_index integer DEFAULT -1 NOT NULL,
    attempt bigint NOT NULL,
    status dagapp.task_status NOT NULL,
    output jsonb,
    error_message text,
    error_code varchar(64),
    retryable boolean DEFAULT true NOT NULL,
    worker_id varchar(64),
    metrics jsonb DEFAULT '{}'::jsonb NOT NULL,
    started_at timestamptz,
    reported_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_task_results_pkey PRIMARY KEY (task_id),
    CONSTRAINT dag_task_results_job_id_fkey FOREIGN KEY (job_id) REFERENCES dagapp.dag_jobs (job_id) ON DELETE CASCADE
);

CREATE INDEX idx_dag_task_results_reported ON dagapp.dag_task_results USING brin (reported_at);

COMMENT ON TABLE dagapp.dag_task_results IS 'Append-only: one row per attempt that ended while it was the current one.';

CREATE TABLE dagapp.dag_inbox (
    sequence bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    owner_id varchar(64) DEFAULT '' NOT NULL,
    job_id varchar(64) NOT NULL,
    node_id varchar(64) DEFAULT '' NOT NULL,
    item_index integer DEFAULT -1 NOT NULL,
    attempt bigint DEFAULT 0 NOT NULL,
    task_id varchar(200) DEFAULT '' NOT NULL,
    report dagapp.report NOT NULL,
    reason varchar(500),
    worker_id varchar(64),
    started_at timestamptz,
    CONSTRAINT dag_inbox_pkey PRIMARY KEY (owner_id, sequence)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

COMMENT ON TABLE dagapp.dag_inbox IS 'A report that the job''s owner has not taken yet. Hot and tiny: inserted by workers, deleted by the owner.';

COMMENT ON COLUMN dagapp.dag_inbox.owner_id IS 'The job''s owner when the report came; empty when it had none';

COMMENT ON COLUMN dagapp.dag_inbox.reason IS 'Of a command';

CREATE TABLE dagapp.dag_checkpoints (
    job_id varchar(64) NOT NULL,
    node_id varchar(64) NOT NULL,
    item_index integer DEFAULT -1 NOT NULL,
    phase varchar(64) NOT NULL,
    data jsonb DEFAULT '{}'::jsonb NOT NULL,
    attempt bigint NOT NULL,
    saved_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_checkpoints_pkey PRIMARY KEY (job_id, node_id, item_index),
    CONSTRAINT dag_checkpoints_job_id_fkey FOREIGN KEY (job_id) REFERENCES dagapp.dag_jobs (job_id) ON DELETE CASCADE
);

COMMENT ON TABLE dagapp.dag_checkpoints IS 'Where a task can resume. One per node and item: the next attempt reads what the last one saved.';

COMMENT ON COLUMN dagapp.dag_checkpoints.attempt IS 'The attempt that saved it; an older attempt never overwrites a newer one''s';

CREATE TABLE dagapp.dag_job_events (
    event_id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    job_id varchar(64) NOT NULL,
    node_id varchar(64),
    item_index integer DEFAULT -1 NOT NULL,
    event_type dagapp.event_type NOT NULL,
    event_status dagapp.event_status DEFAULT 'info' NOT NULL,
    event_data jsonb DEFAULT '{}'::jsonb NOT NULL,
    checkpoint_name varchar(64),
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_job_events_pkey PRIMARY KEY (event_id),
    CONSTRAINT dag_job_events_job_id_fkey FOREIGN KEY (job_id) REFERENCES dagapp.dag_jobs (job_id) ON DELETE CASCADE
);

CREATE INDEX idx_dag_job_events_job ON dagapp.dag_job_events USING btree (job_id, event_id);

CREATE TABLE dagapp.dag_task_logs (
    log_id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    job_id varchar(64) NOT NULL,
    node_id varchar(64) NOT NULL,
    item_index integer DEFAULT -1 NOT NULL,
    attempt bigint NOT NULL,
    level varchar(64) NOT NULL,
    message varchar(500) NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_task_logs_pkey PRIMARY KEY (log_id),
    CONSTRAINT dag_task_logs_job_id_fkey FOREIGN KEY (job_id) REFERENCES dagapp.dag_jobs (job_id) ON DELETE CASCADE
);

CREATE INDEX idx_dag_task_logs_job ON dagapp.dag_task_logs USING btree (job_id, log_id);

COMMENT ON TABLE dagapp.dag_task_logs IS 'Append-only: one row per line. Not fenced: what an attempt said stays true after it lost its lease.';

CREATE TABLE dagapp.dag_queue (
    sequence bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    queue_name varchar(64) NOT NULL,
    message_id varchar(200) NOT NULL,
    body jsonb NOT NULL,
    priority smallint DEFAULT 0 NOT NULL,
    visible_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz,
    delivery_count integer DEFAULT 0 NOT NULL,
    lease_token bigint,
    leased_by varchar(64),
    leased_until timestamptz,
    started_at timestamptz,
    progress double precision,
    progress_message varchar(200),
    enqueued_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_queue_pkey PRIMARY KEY (sequence),
    CONSTRAINT dag_queue_lease CHECK ((lease_token IS NULL) = (leased_until IS NULL)),
    CONSTRAINT dag_queue_priority CHECK (priority BETWEEN 0 AND 10)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE UNIQUE INDEX idx_dag_queue_message ON dagapp.dag_queue USING btree (queue_name, message_id);

CREATE INDEX idx_dag_queue_ready ON dagapp.dag_queue USING btree (queue_name, priority DESC, sequence) WHERE lease_token IS NULL;

CREATE INDEX idx_dag_queue_expiry ON dagapp.dag_queue USING btree (expires_at) WHERE expires_at IS NOT NULL AND lease_token IS NULL;

CREATE INDEX idx_dag_queue_leased ON dagapp.dag_queue USING btree (leased_by) WHERE lease_token IS NOT NULL;

COMMENT ON TABLE dagapp.dag_queue IS 'A waiting or leased message. Hot: inserted, leased, deleted.';

COMMENT ON COLUMN dagapp.dag_queue.message_id IS 'Sent twice, it is stored once';

COMMENT ON COLUMN dagapp.dag_queue.lease_token IS 'New and greater at each delivery that has reached the disk';

CREATE TABLE dagapp.dag_dead_letters (
    sequence bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    queue_name varchar(64) NOT NULL,
    message_id varchar(200) NOT NULL,
    body jsonb NOT NULL,
    priority smallint DEFAULT 0 NOT NULL,
    reason varchar(64) NOT NULL,
    description text NOT NULL,
    delivery_count integer DEFAULT 0 NOT NULL,
    enqueued_at timestamptz DEFAULT now() NOT NULL,
    dead_lettered_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_dead_letters_pkey PRIMARY KEY (sequence)
);

CREATE INDEX idx_dag_dead_letters_queue ON dagapp.dag_dead_letters USING btree (queue_name, sequence DESC);

COMMENT ON TABLE dagapp.dag_dead_letters IS 'A message that nobody can handle, kept with the reason until somebody looks.';

CREATE TABLE dagapp.dag_instances (
    instance_id varchar(64) NOT NULL,
    role dagapp.instance_role NOT NULL,
    hostname varchar(255) NOT NULL,
    pid integer NOT NULL,
    lock_key bigint NOT NULL,
    version varchar(64) NOT NULL,
    queues jsonb DEFAULT '[]'::jsonb NOT NULL,
    duties jsonb DEFAULT '{}'::jsonb NOT NULL,
    started_at timestamptz DEFAULT now() NOT NULL,
    heartbeat_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_instances_pkey PRIMARY KEY (instance_id)
);

CREATE INDEX idx_dag_instances_role ON dagapp.dag_instances USING btree (role, heartbeat_at DESC);

COMMENT ON COLUMN dagapp.dag_instances.lock_key IS 'Advisory lock that the process holds while it lives';

COMMENT ON COLUMN dagapp.dag_instances.queues IS 'What a worker takes from';

COMMENT ON COLUMN dagapp.dag_instances.duties IS 'The last error of each duty that ever failed';

CREATE TABLE dagapp.dag_schedules (
    schedule_id varchar(64) NOT NULL,
    workflow_id varchar(64) NOT NULL,
    input_params jsonb DEFAULT '{}'::jsonb NOT NULL,
    cron varchar(128),
    interval_seconds integer,
    timezone varchar(64) DEFAULT 'UTC' NOT NULL,
    catch_up dagapp.catch_up DEFAULT 'last' NOT NULL,
    max_concurrent integer DEFAULT 1 NOT NULL,
    paused boolean DEFAULT false NOT NULL,
    next_due_at timestamptz,
    last_fired_at timestamptz,
    last_error text,
    held_until timestamptz,
    open_jobs jsonb DEFAULT '[]'::jsonb NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_schedules_pkey PRIMARY KEY (schedule_id),
    CONSTRAINT dag_schedules_timing CHECK ((cron IS NULL) <> (interval_seconds IS NULL)),
    CONSTRAINT dag_schedules_interval CHECK (interval_seconds > 0),
    CONSTRAINT dag_schedules_concurrent CHECK (max_concurrent >= 1)
);

CREATE INDEX idx_dag_schedules_due ON dagapp.dag_schedules USING btree (next_due_at) WHERE NOT paused;

COMMENT ON COLUMN dagapp.dag_schedules.next_due_at IS 'The first due time that is not dealt with';

COMMENT ON COLUMN dagapp.dag_schedules.last_error IS 'Why it could not fire; null once it could';

COMMENT ON COLUMN dagapp.dag_schedules.held_until IS 'It could not fire when it was due: nobody looks at it before then';

COMMENT ON COLUMN dagapp.dag_schedules.open_jobs IS 'Jobs of its that had not ended when it last fired';

CREATE TABLE dagapp.dag_callbacks (
    delivery_id varchar(64) DEFAULT gen_random_uuid() NOT NULL,
    job_id varchar(64) NOT NULL,
    run_number integer DEFAULT 1 NOT NULL,
    url varchar(512) NOT NULL,
    payload jsonb NOT NULL,
    status dagapp.callback_status DEFAULT 'pending' NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamptz DEFAULT now() NOT NULL,
    last_error text,
    created_at timestamptz DEFAULT now() NOT NULL,
    ended_at timestamptz,
    CONSTRAINT dag_callbacks_pkey PRIMARY KEY (delivery_id),
    CONSTRAINT dag_callbacks_ended_at CHECK ((status = 'pending') = (ended_at IS NULL)),
    CONSTRAINT dag_callbacks_job_id_fkey FOREIGN KEY (job_id) REFERENCES dagapp.dag_jobs (job_id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX idx_dag_callbacks_job ON dagapp.dag_callbacks USING btree (job_id, run_number);

CREATE INDEX idx_dag_callbacks_due ON dagapp.dag_callbacks USING btree (due_at) WHERE status = 'pending';

COMMENT ON TABLE dagapp.dag_callbacks IS 'A call to make because a job has ended. While somebody makes it, `due_at` lies behind the end of the attempt.';

COMMENT ON COLUMN dagapp.dag_callbacks.delivery_id IS 'Sent along: the same for every attempt';

COMMENT ON COLUMN dagapp.dag_callbacks.payload IS 'What is told, as it was when the job ended';

COMMENT ON COLUMN dagapp.dag_callbacks.attempts IS 'Raised when an attempt begins; fences a late one';
