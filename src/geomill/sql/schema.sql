-- The schema of geomill.
--
-- Generated from the models in geomill.domain; do not edit; run script/schema.
-- `geomill db migrate` brings a database to it. Statuses change only as the state machines allow: the triggers
-- named *_transitions refuse anything else with SQLSTATE GM001.

CREATE EXTENSION IF NOT EXISTS postgis;

CREATE EXTENSION IF NOT EXISTS pg_trgm;

CREATE EXTENSION IF NOT EXISTS btree_gist;

CREATE EXTENSION IF NOT EXISTS unaccent;

CREATE SCHEMA IF NOT EXISTS dagapp;

CREATE SCHEMA IF NOT EXISTS app;

CREATE SCHEMA IF NOT EXISTS catalogue;

CREATE TYPE dagapp.job_purpose AS ENUM ('process', 'export', 'withdraw', 'delete');

CREATE TYPE dagapp.job_status AS ENUM ('pending', 'running', 'completed', 'failed', 'cancelled');

CREATE TYPE dagapp.node_status AS ENUM ('pending', 'ready', 'dispatched', 'running', 'completed', 'failed', 'skipped', 'cancelled');

CREATE TYPE dagapp.task_status AS ENUM ('completed', 'failed');

CREATE TYPE dagapp.report AS ENUM ('running', 'completed', 'failed', 'abandoned', 'cancel', 'pause', 'resume');

CREATE TYPE dagapp.event_type AS ENUM ('job_created', 'job_started', 'job_completed', 'job_failed', 'job_cancelled', 'job_paused', 'job_resumed', 'job_retried', 'job_reclaimed', 'job_parked', 'job_released', 'node_dispatched', 'node_completed', 'node_failed', 'node_retried', 'node_skipped', 'node_cancelled', 'fan_out_expanded', 'checkpoint_saved', 'result_stale', 'callback_delivered', 'callback_failed');

CREATE TYPE dagapp.event_status AS ENUM ('info', 'success', 'warning', 'failure');

CREATE TYPE dagapp.instance_role AS ENUM ('orchestrator', 'worker');

CREATE TYPE dagapp.catch_up AS ENUM ('skip', 'last', 'all');

CREATE TYPE dagapp.callback_status AS ENUM ('pending', 'delivered', 'given_up');

CREATE TYPE app.data_type AS ENUM ('raster', 'vector');

CREATE TYPE app.clearance_state AS ENUM ('uncleared', 'ouo', 'public');

CREATE TYPE app.approval_state AS ENUM ('pending_review', 'approved', 'rejected');

CREATE TYPE app.processing_status AS ENUM ('pending', 'processing', 'completed', 'failed');

CREATE TYPE app.request_status AS ENUM ('accepted', 'processing', 'completed', 'failed', 'superseded');

CREATE TYPE app.upload_status AS ENUM ('receiving', 'complete', 'failed');

CREATE TYPE app.decision AS ENUM ('submitted', 'overwritten', 'reactivated', 'retried', 'approved', 'clearance_changed', 'rejected', 'revoked', 'unpublished', 'rolled_back', 'export_retried', 'styled');

CREATE TYPE app.may_name AS ENUM ('allowed', 'required', 'forbidden');

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

-- Deletes the nodes and results of a deleted job. Their tables have no foreign key to the job: rows are added by the
-- thousand, under the lock of the job's owner, and checking the job for each would be expensive. Results are found by
-- their task ids, which follow from the nodes, because they have no other index. Items of a fan-out under way may have a
-- result but no row.
CREATE OR REPLACE FUNCTION dagapp.forget_job() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog
AS $$
BEGIN
    WITH gone AS (
        DELETE FROM dagapp.dag_node_states WHERE job_id = OLD.job_id
        RETURNING job_id, node_id, item_index, attempt, items_sent, status
    )
    DELETE FROM dagapp.dag_task_results AS r
    USING (SELECT job_id || ':' || node_id || CASE WHEN item_index >= 0 THEN '[' || item_index || ']' ELSE '' END
                  || ':' || number AS task_id
           FROM gone, generate_series(1, attempt) AS number
           UNION ALL
           SELECT job_id || ':' || node_id || '[' || item || ']:1'
           FROM gone, generate_series(0, items_sent - 1) AS item
           WHERE status = 'running'
           OFFSET 0) AS attempts
    WHERE r.task_id = ANY (ARRAY[attempts.task_id]);
    RETURN NULL;
END
$$;

-- Updates an asset's execution state from its job. Nothing else changes that state. It runs in the transaction that
-- changes the job: a verdict, a refusal at the claim, or an operator's cancel or retry.
--
-- Only the job that the asset waits for counts: the latest job of the latest request for the current revision. An older
-- job that ends late changes nothing. Locks are always taken in the order job, asset, request.
CREATE OR REPLACE FUNCTION app.follow_job() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog
AS $$
DECLARE
    began boolean := TG_OP = 'INSERT' OR OLD.completed_at IS NOT NULL AND NEW.completed_at IS NULL;
    completed boolean := NEW.status = 'completed';
    failed boolean := NEW.status IN ('failed', 'cancelled');
    result jsonb := coalesce(NEW.result_data, '{}');
    fraction float8 := (NEW.node_summary ->> 'fraction')::float8;
    error text := left(coalesce(NEW.error_message, NEW.status::text), 2000);
BEGIN
    IF NEW.purpose = 'process' THEN
        UPDATE app.geospatial_assets AS a
        SET processing_status = CASE
                WHEN completed THEN 'completed' WHEN failed THEN 'failed' ELSE 'processing'
            END::app.processing_status,
            -- The first attempt counts: whoever waits for the asset has waited since then.
            processing_started_at = coalesce(a.processing_started_at, CASE WHEN began THEN now() END),
            processing_completed_at = CASE WHEN completed THEN now() END,
            estimated_completion_at = CASE
                WHEN NOT completed AND NOT failed AND NEW.run_number = 1 AND fraction BETWEEN 0.02 AND 0.999
                THEN now() + (now() - NEW.started_at) * ((1 - fraction) / fraction)
            END,
            last_error = CASE WHEN failed THEN error END,
            node_summary = coalesce(NEW.node_summary, CASE WHEN NOT began THEN a.node_summary END),
            current_job_id = NEW.job_id,
            job_count = a.job_count + began::integer,
            workflow_version = NEW.workflow_version,
            served_revision = CASE WHEN completed THEN NEW.asset_revision ELSE a.served_revision END,
            table_name = CASE WHEN completed THEN left(result ->> 'table_name', 63) ELSE a.table_name END,
            blob_path = CASE WHEN completed THEN left(result ->> 'blob_path', 500) ELSE a.blob_path END,
            -- The submitter's metadata belongs to the revision, so it lies among its outputs.
            outputs = CASE
                WHEN NOT completed THEN a.outputs
                WHEN r.metadata IS NULL THEN result - 'dataset_metadata'
                ELSE result || jsonb_build_object('dataset_metadata', r.metadata)
            END,
            warnings = CASE
                WHEN NOT completed THEN a.warnings
                WHEN jsonb_typeof(result -> 'warnings') = 'array' THEN to_jsonb(ARRAY(
                    SELECT coalesce(one #>> '{}', 'null') FROM jsonb_array_elements(result -> 'warnings') AS one
                ))
                ELSE '[]'
            END,
            content_hash = CASE WHEN completed THEN left(result ->> 'source_file_hash', 128) ELSE a.content_hash END,
            source_file_hash = CASE WHEN completed THEN left(result ->> 'source_file_hash', 64) ELSE a.source_file_hash END,
            output_file_hash = CASE WHEN completed THEN left(result ->> 'output_file_hash', 64) ELSE a.output_file_hash END,
            updated_at = now()
        FROM app.platform_requests AS r
        WHERE a.asset_id = NEW.asset_id AND a.revision = NEW.asset_revision
          AND r.request_id = a.last_request_id AND r.request_id = NEW.request_id AND r.job_id = NEW.job_id;

        UPDATE app.platform_requests AS r
        SET status = CASE WHEN completed THEN 'completed' WHEN failed THEN 'failed' ELSE 'processing' END::app.request_status,
            last_error = CASE WHEN failed THEN error END,
            updated_at = now()
        WHERE r.request_id = NEW.request_id AND r.job_id = NEW.job_id AND r.status <> 'superseded'
          AND (TG_OP = 'INSERT' OR OLD.status <> NEW.status);
    ELSIF completed AND NEW.purpose IN ('export', 'withdraw') THEN
        UPDATE app.geospatial_assets AS a
        SET external_revision = CASE WHEN NEW.purpose = 'export' THEN NEW.asset_revision END,
            external_files = CASE WHEN NEW.purpose = 'export' THEN coalesce(result -> 'files', '[]') END,
            external_run_id = NEW.job_id,
            updated_at = now()
        WHERE a.asset_id = NEW.asset_id AND a.adf_run_id = NEW.job_id;
    END IF;
    RETURN NULL;
END
$$;

-- Returns the error of a stage job's attempt with the names that its author knows: the stage and the task. A plan that
-- lies in the object store has no names here; then the position stands for the task.
CREATE OR REPLACE FUNCTION dagapp.stage_error(run_id text, failed_node text, error text) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    stage text := substring(failed_node FROM '^stage(\d{1,4})_(?:plan|tasks|results|aggregate)$');
    cause text := regexp_replace(error, '^node ''[^'']*'' failed: ', '');
    place text := CASE WHEN failed_node LIKE '%\_tasks' THEN substring(cause FROM '^item (\d{1,9}): ') END;
    task text;
BEGIN
    IF stage IS NULL OR error IS NULL THEN
        RETURN error;
    ELSIF place IS NULL THEN
        RETURN CASE WHEN cause ~ ('\mstage ' || stage || '\M') THEN cause ELSE 'stage ' || stage || ': ' || cause END;
    END IF;
    SELECT n.output -> 'indexes' ->> place::integer INTO task
    FROM dagapp.dag_node_states AS n
    WHERE n.job_id = stage_error.run_id AND n.node_id = 'stage' || stage || '_plan' AND n.item_index = -1;
    RETURN format('stage %s, task %s: %s', stage, coalesce(task, place), regexp_replace(cause, '^item \d+: ', ''));
END
$$;

CREATE OR REPLACE FUNCTION app.refuse_transition() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    RAISE EXCEPTION USING
        ERRCODE = 'GM001',
        MESSAGE = format('%I.%I: %s cannot go from %s to %s', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_ARGV[0],
                         to_jsonb(OLD) ->> TG_ARGV[0], to_jsonb(NEW) ->> TG_ARGV[0]),
        SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, COLUMN = TG_ARGV[0];
END
$$;

CREATE OR REPLACE FUNCTION app.refuse_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    RAISE EXCEPTION USING
        ERRCODE = 'GM002',
        MESSAGE = format('%I.%I: %s', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_ARGV[0]),
        SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
END
$$;

-- The latest revision of an asset before the given one that has an item and can still be read: it was neither withdrawn
-- nor deleted.
CREATE OR REPLACE FUNCTION app.revision_before(_asset_id text, _revision integer) RETURNS integer
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
BEGIN
    RETURN (
        SELECT max(r.revision)
        FROM app.asset_revisions AS r JOIN app.geospatial_assets AS a ON a.asset_id = r.asset_id
        WHERE r.asset_id = _asset_id AND r.revision < _revision
          AND r.revision > greatest(a.data_deleted_through, a.withdrawn_through) AND r.outputs ? 'stac_item'
          AND NOT EXISTS (SELECT FROM app.asset_leftovers AS l
                          WHERE l.asset_id = r.asset_id AND l.revision = r.revision
                            AND l.job_id IS NOT DISTINCT FROM r.job_id)
    );
END
$$;

-- Drops the tables of revisions to delete and returns their names. Only the job of the asset's current order can do it.
-- It runs as the owner, because the tables belong to the role that made them, not to the worker.
CREATE OR REPLACE FUNCTION app.drop_revision_tables(_asset_id text, _job_id text) RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog
AS $$
DECLARE
    _asset record;
    _name text;
    _dropped text[] := '{}';
BEGIN
    SELECT a.table_stem, a.data_deleted_through INTO _asset
    FROM app.geospatial_assets AS a WHERE a.asset_id = _asset_id AND a.delete_run_id = _job_id
    FOR SHARE;
    FOR _name IN
        SELECT t.tablename
        FROM pg_tables AS t
        CROSS JOIN LATERAL regexp_match(
            substr(t.tablename, length(_asset.table_stem) + 1), '^_r([0-9]{1,9})(_points|_lines|_areas)?$'
        ) AS m
        WHERE t.schemaname = 'geo' AND starts_with(t.tablename, _asset.table_stem)
          AND m[1]::integer BETWEEN 1 AND _asset.data_deleted_through
        ORDER BY t.tablename
    LOOP
        EXECUTE format('DROP TABLE geo.%I', _name);
        _dropped := _dropped || _name;
    END LOOP;
    RETURN _dropped;
END
$$;

-- Whether outputs name files or tables of a revision. After a rollback the outputs of a later revision do.
CREATE OR REPLACE FUNCTION app.mentions_revision(_outputs jsonb, _blob_stem text, _table_stem text, _revision integer)
    RETURNS boolean
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog
AS $$
    SELECT coalesce(
        strpos(_outputs::text, format('%s/_r%s/', _blob_stem, _revision)) > 0
            OR _outputs::text ~ format('%s_r%s([^0-9]|$)', _table_stem, _revision),
        false)
$$;

-- Whether the data of a revision is no longer needed: it failed, was cancelled or was superseded before the given times,
-- and neither the served revision, the public one, nor one that a rollback can restore uses its data.
CREATE OR REPLACE FUNCTION app.is_leftover(
    _asset_id text, _revision integer, _failed_before timestamptz, _completed_before timestamptz
) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
BEGIN
    RETURN EXISTS (
        SELECT
        FROM app.geospatial_assets AS a
        WHERE a.asset_id = _asset_id AND _revision > a.data_deleted_through
          AND (EXISTS (
                   SELECT FROM app.asset_revisions AS r
                   WHERE r.asset_id = a.asset_id AND r.revision = _revision AND _revision < a.revision
                     AND r.superseded_at < CASE WHEN r.outputs IS NULL THEN _failed_before ELSE _completed_before END)
               OR (_revision = a.revision AND a.processing_status = 'failed' AND a.updated_at < _failed_before
                   AND a.served_revision IS DISTINCT FROM a.revision
                   AND EXISTS (SELECT FROM app.platform_requests AS q
                               WHERE q.request_id = a.last_request_id AND q.status = 'failed')))
          AND NOT EXISTS (SELECT FROM dagapp.dag_jobs AS j
                          WHERE j.asset_id = a.asset_id AND j.asset_revision = _revision AND j.completed_at IS NULL)
          AND NOT app.mentions_revision(a.outputs, a.blob_stem, a.table_stem, _revision)
          AND NOT EXISTS (
              SELECT FROM app.asset_revisions AS r
              WHERE r.asset_id = a.asset_id
                AND (_completed_before IS NULL OR r.superseded_at >= _completed_before OR r.revision = a.public_revision)
                AND app.mentions_revision(r.outputs, a.blob_stem, a.table_stem, _revision))
    );
END
$$;

-- Drops the tables of a revision that this transaction has recorded as a leftover, and returns their names. It runs as
-- the owner, because the tables belong to the role that made them, not to the orchestrator. Tables that are served or
-- public are never dropped.
CREATE OR REPLACE FUNCTION app.drop_leftover_tables(_asset_id text, _revision integer) RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog
AS $$
DECLARE
    _stem text;
    _name text;
    _dropped text[] := '{}';
BEGIN
    SELECT a.table_stem INTO _stem
    FROM app.geospatial_assets AS a
    JOIN app.asset_leftovers AS l ON l.asset_id = a.asset_id AND l.revision = _revision AND l.deleted_at = now()
    WHERE a.asset_id = _asset_id
      AND NOT app.mentions_revision(a.outputs, a.blob_stem, a.table_stem, _revision)
      AND NOT EXISTS (SELECT FROM app.asset_revisions AS r
                      WHERE r.asset_id = a.asset_id AND r.revision = a.public_revision
                        AND app.mentions_revision(r.outputs, a.blob_stem, a.table_stem, _revision))
    FOR SHARE OF a;
    FOR _name IN
        SELECT t.tablename
        FROM pg_tables AS t
        WHERE t.schemaname = 'geo' AND t.tablename IN (
            format('%s_r%s', _stem, _revision), format('%s_r%s_points', _stem, _revision),
            format('%s_r%s_lines', _stem, _revision), format('%s_r%s_areas', _stem, _revision))
        ORDER BY t.tablename
    LOOP
        EXECUTE format('DROP TABLE geo.%I', _name);
        _dropped := _dropped || _name;
    END LOOP;
    RETURN _dropped;
END
$$;

-- Notes that the catalogue entry of an asset must be written again, in the transaction that changes the asset.
--
-- A change by a job (a trigger made it) leaves the present entry as it is until an orchestrator writes the new one: the
-- job's statement also drives other jobs, so it must not wait for a collection. A change by a person withholds the entry
-- from everybody until it is written. The decision itself writes it, in the same transaction (catalogue/following.py).
CREATE OR REPLACE FUNCTION app.follow_asset() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog
AS $$
DECLARE
    _decided boolean := pg_trigger_depth() = 1;
BEGIN
    INSERT INTO catalogue.pending AS p (asset_id, reason, withheld)
    VALUES (NEW.asset_id, CASE WHEN _decided THEN 'a decision changed the asset' ELSE 'a job has ended' END, _decided)
    ON CONFLICT (asset_id) DO UPDATE
    SET reason = EXCLUDED.reason, withheld = p.withheld OR EXCLUDED.withheld, attempts = 0, due_at = now();
    RETURN NULL;
END
$$;

-- Sets the asset back to pending when a retry gives its request a new job.
CREATE OR REPLACE FUNCTION app.follow_request() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog
AS $$
BEGIN
    UPDATE app.geospatial_assets AS a
    SET processing_status = 'pending', last_error = NULL, node_summary = NULL, processing_completed_at = NULL,
        updated_at = now()
    WHERE a.asset_id = NEW.asset_id AND a.revision = NEW.revision AND a.last_request_id = NEW.request_id;
    RETURN NULL;
END
$$;

-- The footprint, repaired if it is not valid, and with the parts beyond 180° moved to their place. One invalid footprint
-- would make every search by place fail, and no search finds a place beyond 180°. A footprint without an area becomes its
-- envelope, which is a line or a point.
CREATE OR REPLACE FUNCTION catalogue.sound_place(_geometry public.geometry) RETURNS public.geometry
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = public
AS $$
DECLARE
    _sound geometry := CASE WHEN st_isvalid(_geometry) THEN _geometry ELSE st_makevalid(_geometry, 'method=structure') END;
BEGIN
    IF st_isempty(_sound) THEN
        _sound := st_envelope(_geometry);
    END IF;
    IF st_xmax(_sound) > 180 THEN
        _sound := st_wrapx(_sound, 180, -360);
    END IF;
    IF st_xmin(_sound) < -180 THEN
        _sound := st_wrapx(_sound, -180, 360);
    END IF;
    RETURN CASE WHEN st_isvalid(_sound) THEN _sound ELSE st_unaryunion(_sound) END;
END
$$;

-- The extent of a collection, widened to the given box and times. Without an extent, those of the box and times alone.
CREATE OR REPLACE FUNCTION catalogue.widened_extent(
    _extent jsonb, _west float8, _south float8, _east float8, _north float8, _begin timestamptz, _end timestamptz
) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog
    SET timezone = 'UTC'
AS $$
DECLARE
    _box jsonb := _extent #> '{spatial,bbox,0}';
    _times jsonb := _extent #> '{temporal,interval,0}';
    _shape text := 'YYYY-MM-DD"T"HH24:MI:SS"Z"';
BEGIN
    RETURN jsonb_build_object(
        'spatial', jsonb_build_object('bbox', jsonb_build_array(jsonb_build_array(
            least((_box ->> 0)::float8, _west), least((_box ->> 1)::float8, _south),
            greatest((_box ->> 2)::float8, _east), greatest((_box ->> 3)::float8, _north)
        ))),
        'temporal', jsonb_build_object('interval', jsonb_build_array(jsonb_build_array(
            to_char(least((_times ->> 0)::timestamptz, date_trunc('second', _begin)), _shape),
            to_char(greatest((_times ->> 1)::timestamptz, date_trunc('second', _end + interval '0.999999 s')), _shape)
        )))
    );
END
$$;

-- Whether a box and times lie at the edge of an extent, so that the extent may be smaller without them.
CREATE OR REPLACE FUNCTION catalogue.touches_extent(
    _extent jsonb, _west float8, _south float8, _east float8, _north float8, _begin timestamptz, _end timestamptz
) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    _box jsonb := _extent #> '{spatial,bbox,0}';
    _times jsonb := _extent #> '{temporal,interval,0}';
BEGIN
    RETURN coalesce(
        _west <= (_box ->> 0)::float8 OR _south <= (_box ->> 1)::float8
        OR _east >= (_box ->> 2)::float8 OR _north >= (_box ->> 3)::float8
        OR date_trunc('second', _begin) <= (_times ->> 0)::timestamptz
        OR date_trunc('second', _end + interval '0.999999 s') >= (_times ->> 1)::timestamptz,
        true
    );
END
$$;

-- Measures extents and counts of a collection from its items, after an item has left the edge of an extent. The caller has
-- locked the collection. The content of items is not read: a column of its own says whether an item is public.
CREATE OR REPLACE FUNCTION catalogue.measure_collection(_name text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pgstac, public
AS $$
DECLARE
    _all record;
    _open record;
BEGIN
    SELECT count(*) AS items, st_extent(geometry) AS box, min(datetime) AS begins, max(end_datetime) AS ends
    INTO _all FROM items WHERE collection = _name;
    SELECT count(*) AS items, st_extent(geometry) AS box, min(datetime) AS begins, max(end_datetime) AS ends
    INTO _open FROM items WHERE collection = _name AND private = '{"public": true}';

    UPDATE catalogue.collections AS c
    SET items = _all.items, public_items = _open.items,
        public_extent = CASE WHEN _open.items > 0 THEN catalogue.widened_extent(
            NULL, st_xmin(_open.box), st_ymin(_open.box), st_xmax(_open.box), st_ymax(_open.box), _open.begins, _open.ends
        ) END
    WHERE c.collection_id = _name;
    IF _all.items > 0 THEN
        UPDATE collections AS c
        SET content = jsonb_set(c.content, '{extent}', catalogue.widened_extent(
            NULL, st_xmin(_all.box), st_ymin(_all.box), st_xmax(_all.box), st_ymax(_all.box), _all.begins, _all.ends
        ))
        WHERE c.id = _name;
    END IF;
END
$$;

-- Locks the collection for this transaction, creates it and its partition if they are missing, and returns the name of the
-- partition. Writers of one collection take turns, because pgstac takes its own locks in varying orders.
--
-- pgstac limits a partition to the dates of its items by a constraint, and alters the table for each item outside of them,
-- under a lock that stops readers. Our partitions have no such constraint: a table is altered only when it is created.
CREATE OR REPLACE FUNCTION catalogue.reserve_collection(
    _name text, _collection jsonb, _platform text, _begins tstzrange, _ends tstzrange
) RETURNS text
    LANGUAGE plpgsql
    SET search_path = pgstac, public
AS $$
DECLARE
    _partition text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(_name, 11));
    SELECT p.partition INTO _partition
    FROM partition_stats AS p JOIN catalogue.collections AS o ON o.collection_id = p.collection
    WHERE p.collection = _name
      AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass('pgstac.' || p.partition) AND contype = 'c');
    IF FOUND THEN
        RETURN _partition;
    END IF;
    INSERT INTO collections (content)
    VALUES (_collection || jsonb_build_object('id', _name, 'type', 'Collection', 'links', '[]'::jsonb))
    ON CONFLICT (id) DO NOTHING;
    INSERT INTO catalogue.collections (collection_id, platform_id) VALUES (_name, _platform) ON CONFLICT DO NOTHING;
    _partition := check_partition(_name, _begins, _ends);
    IF EXISTS (SELECT FROM pg_constraint WHERE conrelid = partition_oid(_partition) AND contype = 'c') THEN
        PERFORM drop_table_constraints(_partition);
    END IF;
    RETURN _partition;
END
$$;

-- The columns of pgstac's items for the document of an item. `private` says whether the item is public, so that searches
-- need not read its content. Nothing is left out of the content, because our collections have no item_assets from which
-- pgstac could put it back.
CREATE OR REPLACE FUNCTION catalogue.item_row(_item jsonb)
    RETURNS TABLE (
        id text, geometry public.geometry, datetime timestamptz, end_datetime timestamptz, content jsonb, private jsonb
    )
    LANGUAGE sql STABLE
AS $$
    SELECT _item ->> 'id',
           catalogue.sound_place(public.st_geomfromgeojson(_item -> 'geometry')),
           coalesce(_item #>> '{properties,start_datetime}', _item #>> '{properties,datetime}')::timestamptz,
           coalesce(_item #>> '{properties,end_datetime}', _item #>> '{properties,datetime}')::timestamptz,
           _item - '{id,geometry,collection,type}'::text[],
           jsonb_build_object('public', coalesce((_item #> '{properties,geomill:public}')::boolean, false))
$$;

-- Whether an extent may be too large after items were replaced: the old items lie at its edge, and the new ones do not
-- cover them. The items of each side are given by their box and their times, which are null where there are no items.
CREATE OR REPLACE FUNCTION catalogue.leaves_edge(
    _extent jsonb, _old_box public.box2d, _old_begin timestamptz, _old_end timestamptz,
    _new_box public.box2d, _new_begin timestamptz, _new_end timestamptz
) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = public
AS $$
BEGIN
    IF _old_box IS NULL OR coalesce(
        st_xmin(_new_box) <= st_xmin(_old_box) AND st_ymin(_new_box) <= st_ymin(_old_box)
        AND st_xmax(_new_box) >= st_xmax(_old_box) AND st_ymax(_new_box) >= st_ymax(_old_box)
        AND _new_begin <= _old_begin AND _new_end >= _old_end, false)
    THEN
        RETURN false;
    END IF;
    RETURN catalogue.touches_extent(
        _extent, st_xmin(_old_box), st_ymin(_old_box), st_xmax(_old_box), st_ymax(_old_box), _old_begin, _old_end
    );
END
$$;

-- Writes items of one collection: adds or replaces `_items`, removes the items `_removed`, and removes every other side
-- item of the main items `_series`. Side items have the id of their main item, a dot, and a name of their own; a main id
-- has no dot. Returns how many items were added or replaced.
--
-- Counts and extents of the collection stay right. They grow with the new items. All items are measured again only if an
-- item at the edge of an extent leaves a place that the new items do not cover.
--
-- pgstac's own staging tables are not used: they make a temporary table for each item.
CREATE OR REPLACE FUNCTION catalogue.write_items(
    _name text, _collection jsonb, _platform text, _items jsonb[], _removed text[], _series text[]
) RETURNS integer
    LANGUAGE plpgsql
    SET search_path = pgstac, public
    SET timezone = 'UTC'
AS $$
DECLARE
    _now tstzrange := tstzrange(now(), now(), '[]');
    _table text := 'items';
    _measures text := $measures$
        count(*) AS items, st_extent(geometry) AS box, min(datetime) AS begins, max(end_datetime) AS ends,
        count(*) FILTER (WHERE public) AS public_items, st_extent(geometry) FILTER (WHERE public) AS public_box,
        min(datetime) FILTER (WHERE public) AS public_begins, max(end_datetime) FILTER (WHERE public) AS public_ends
    $measures$;
    _known record;
    _old record;
    _new record;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(_name, 11));
    IF cardinality(_items) > 0 THEN
        _table := catalogue.reserve_collection(_name, _collection, _platform, _now, _now);
    END IF;
    SELECT o.items, o.public_extent, c.content -> 'extent' AS extent INTO _known
    FROM catalogue.collections AS o JOIN collections AS c ON c.id = o.collection_id WHERE o.collection_id = _name;

    EXECUTE format(
        $delete$
            WITH old AS (
                DELETE FROM %1$I AS i
                WHERE i.collection = $1 AND i.id = ANY ($2 || ARRAY(SELECT n ->> 'id' FROM unnest($3) AS n) || ARRAY(
                    SELECT s.id FROM %1$I AS s
                    WHERE cardinality($4) > 0 AND s.collection = $1 AND strpos(s.id, '.') > 0
                      AND split_part(s.id, '.', 1) = ANY ($4)
                ))
                RETURNING i.geometry, i.datetime, i.end_datetime, i.private = '{"public": true}' AS public
            )
            SELECT %2$s FROM old
        $delete$, _table, _measures
    ) INTO _old USING _name, _removed, _items, _series;
    EXECUTE format(
        $insert$
            WITH new AS (
                INSERT INTO %1$I AS i (id, geometry, collection, datetime, end_datetime, content, private)
                SELECT DISTINCT ON (r.id) r.id, r.geometry, $1, r.datetime, r.end_datetime, r.content, r.private
                FROM unnest($2) WITH ORDINALITY AS n (item, place) CROSS JOIN LATERAL catalogue.item_row(n.item) AS r
                ORDER BY r.id, n.place DESC
                RETURNING i.geometry, i.datetime, i.end_datetime, i.private = '{"public": true}' AS public
            )
            SELECT %2$s FROM new
        $insert$, _table, _measures
    ) INTO _new USING _name, _items;

    IF catalogue.leaves_edge(_known.extent, _old.box, _old.begins, _old.ends, _new.box, _new.begins, _new.ends)
        OR catalogue.leaves_edge(_known.public_extent, _old.public_box, _old.public_begins, _old.public_ends,
                                 _new.public_box, _new.public_begins, _new.public_ends)
    THEN
        PERFORM catalogue.measure_collection(_name);
        RETURN _new.items;
    END IF;
    UPDATE catalogue.collections AS c
    SET items = c.items + _new.items - _old.items,
        public_items = c.public_items + _new.public_items - _old.public_items,
        public_extent = CASE WHEN _new.public_items > 0 THEN catalogue.widened_extent(
            c.public_extent, st_xmin(_new.public_box), st_ymin(_new.public_box), st_xmax(_new.public_box),
            st_ymax(_new.public_box), _new.public_begins, _new.public_ends
        ) ELSE c.public_extent END
    WHERE c.collection_id = _name;
    IF _new.items > 0 THEN
        UPDATE collections AS c
        SET content = jsonb_set(c.content, '{extent}', widened.extent)
        FROM (
            SELECT catalogue.widened_extent(
                CASE WHEN _known.items > 0 THEN _known.extent END, st_xmin(_new.box), st_ymin(_new.box),
                st_xmax(_new.box), st_ymax(_new.box), _new.begins, _new.ends
            ) AS extent
        ) AS widened
        WHERE c.id = _name AND c.content -> 'extent' IS DISTINCT FROM widened.extent;
    END IF;
    RETURN _new.items;
END
$$;

-- Adds or replaces many items at once: those of the table `incoming (content jsonb, platform_id text)`, of any
-- collections. Missing collections are created. Of two items with the same id the last one counts. Returns how many items
-- were written.
CREATE OR REPLACE FUNCTION catalogue.put_items(_collections jsonb) RETURNS integer
    LANGUAGE plpgsql
    SET search_path = pgstac, public, pg_temp
    SET timezone = 'UTC'
AS $$
DECLARE
    _group record;
    _now tstzrange := tstzrange(now(), now(), '[]');
    _partition text;
    _count integer := 0;
    _more integer;
BEGIN
    -- All writers take collections in this order, so that two of them do not wait for each other.
    FOR _group IN
        SELECT content ->> 'collection' AS name, min(platform_id) AS platform_id
        FROM incoming GROUP BY 1 ORDER BY 1
    LOOP
        _partition := catalogue.reserve_collection(
            _group.name, _collections -> _group.name, _group.platform_id, _now, _now
        );
        EXECUTE format(
            $insert$
                INSERT INTO %I AS i (id, geometry, collection, datetime, end_datetime, content, private)
                SELECT DISTINCT ON (r.id) r.id, r.geometry, $1, r.datetime, r.end_datetime, r.content, r.private
                FROM incoming AS n CROSS JOIN LATERAL catalogue.item_row(n.content) AS r
                WHERE n.content ->> 'collection' = $1
                ORDER BY r.id, n.ctid DESC
                ON CONFLICT (id) DO UPDATE
                SET geometry = EXCLUDED.geometry, datetime = EXCLUDED.datetime, end_datetime = EXCLUDED.end_datetime,
                    content = EXCLUDED.content, private = EXCLUDED.private
            $insert$, _partition
        ) USING _group.name;
        GET DIAGNOSTICS _more = ROW_COUNT;
        _count := _count + _more;
        PERFORM catalogue.measure_collection(_group.name);
    END LOOP;
    RETURN _count;
END
$$;

-- Returns the collections in which the caller sees an item, with the extent of the items that the caller sees. The
-- columns are those that pgstac's conditions on collections use. A caller's condition is evaluated only on these rows.
CREATE OR REPLACE FUNCTION catalogue.visible_collections(_everything boolean, _platform text)
    RETURNS TABLE (
        id text, geometry public.geometry, collection text, datetime timestamptz, end_datetime timestamptz, content jsonb,
        document jsonb
    )
    LANGUAGE plpgsql STABLE
    SET search_path = pgstac, public
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.id, collection_geom(s.document), 'collections'::text, collection_datetime(s.document),
           collection_enddatetime(s.document),
           jsonb_build_object(
               'properties', s.document - '{links,assets,stac_version,stac_extensions}'::text[],
               'links', s.document -> 'links',
               'assets', s.document -> 'assets',
               'stac_version', s.document -> 'stac_version',
               'stac_extensions', s.document -> 'stac_extensions'
           ),
           s.document
    FROM (
        SELECT c.id,
               CASE WHEN coalesce(_everything OR o.platform_id = _platform, false) THEN c.content
                    ELSE jsonb_set(c.content, '{extent}', o.public_extent) END AS document
        FROM collections AS c LEFT JOIN catalogue.collections AS o ON o.collection_id = c.id
        WHERE CASE WHEN coalesce(_everything OR o.platform_id = _platform, false) THEN coalesce(o.items, 1) > 0
                   ELSE coalesce(o.public_items, 0) > 0 END
    ) AS s;
END
$$;

-- Does what pgstac's collection_search does, among the collections that the caller may see.
CREATE OR REPLACE FUNCTION catalogue.search_collections(_search jsonb, _everything boolean, _platform text) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path = pgstac, public
AS $$
DECLARE
    _limit integer := search_limit(_search);
    _offset integer := search_offset(_search);
    _found jsonb;
BEGIN
    EXECUTE format(
        $query$
            WITH found AS MATERIALIZED (
                SELECT * FROM catalogue.visible_collections($1, $2) WHERE %s
            ), page AS (
                SELECT jsonb_fields(document, %L) AS document FROM found ORDER BY %s LIMIT %L OFFSET %L
            )
            SELECT jsonb_build_object(
                'numberMatched', (SELECT count(*) FROM found),
                'collections', (SELECT coalesce(jsonb_agg(document), '[]') FROM page)
            )
        $query$,
        stac_search_to_where(_search), coalesce(_search -> 'fields', '{}'), sort_sqlorderby(_search, false, '{id}'),
        _limit, _offset
    ) INTO _found USING _everything, _platform;
    RETURN _found || jsonb_build_object('limit', _limit, 'offset', _offset);
END
$$;

-- The condition on pgstac's items under which a caller sees an item. Whether an item is public stands in a column of its
-- own, because reading the content of each row takes longer than all else. Nobody sees an item that is withheld.
CREATE OR REPLACE FUNCTION catalogue.item_rule(_everything boolean, _platform text, _asset text) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    _rule text := 'true';
    _withheld text[];
BEGIN
    IF NOT _everything THEN
        _rule := format('(%s)', concat_ws(
            ' OR ',
            'private = ''{"public": true}''',
            'to_text(content -> ''properties'' -> ''geomill:platform'') = ' || quote_literal(_platform),
            'to_text(content -> ''properties'' -> ''geomill:asset_id'') = ' || quote_literal(_asset)
        ));
    END IF;
    IF to_regclass('catalogue.pending') IS NOT NULL THEN
        SELECT array_agg(p.asset_id) INTO _withheld FROM catalogue.pending AS p WHERE p.withheld;
    END IF;
    IF _withheld IS NOT NULL THEN
        _rule := format(
            '(%s AND coalesce(to_text(content -> ''properties'' -> ''geomill:asset_id''), '''') <> ALL (%L))',
            _rule, _withheld
        );
    END IF;
    RETURN _rule;
END
$$;

-- Returns a caller's condition so that it is never evaluated on an item that the caller may not see. It might fail on
-- such an item, which would reveal that the item exists. AND guarantees no order of evaluation; CASE does.
CREATE OR REPLACE FUNCTION catalogue.guarded(_rule text, _wanted text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog
AS $$
BEGIN
    RETURN CASE WHEN _rule = 'true' THEN _wanted ELSE format('CASE WHEN %s THEN %s ELSE false END', _rule, _wanted) END;
END
$$;

-- Returns an item as a STAC document. Geomill stores items whole. For an item that pgstac's own tools have loaded, the
-- values that it shares with its collection are added again.
CREATE OR REPLACE FUNCTION catalogue.item_document(
    _id text, _collection text, _geometry public.geometry, _content jsonb
) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path = pgstac, public
AS $$
DECLARE
    _document jsonb := (_content - 'pgstac:base_item') || jsonb_build_object(
        'id', _id, 'collection', _collection, 'type', 'Feature', 'geometry', ST_AsGeoJSON(_geometry, 20)::jsonb
    );
BEGIN
    IF _content ? 'stac_version' AND NOT _content ? 'pgstac:base_item' THEN
        RETURN _document;
    END IF;
    RETURN content_hydrate(
        _document, collection_base_item(_collection, (_content ->> 'pgstac:base_item')::integer), '{}'
    );
END
$$;

-- Returns how many items match a search, if that is known without reading them, else null. If the caller sees everything
-- and there are very many items, the result is pgstac's estimate. If the search wants no count, it is -1.
CREATE OR REPLACE FUNCTION catalogue.known_count(_search jsonb, _rule text, _everything boolean, _where text) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET search_path = pgstac, public
AS $$
DECLARE
    _names text[] := nullif(to_text_array(_search -> 'collections'), '{}');
    _stats record;
    _all bigint;
    _public bigint;
    _strays boolean;
BEGIN
    IF _search ? 'uncounted' THEN
        RETURN -1;
    END IF;
    SELECT coalesce(sum(o.items), 0), coalesce(sum(o.public_items), 0), count(*) FILTER (WHERE o.collection_id IS NULL) > 0
    INTO _all, _public, _strays
    FROM collections AS c LEFT JOIN catalogue.collections AS o ON o.collection_id = c.id
    WHERE _names IS NULL OR c.id = ANY (_names);
    IF NOT _search ?| '{ids,bbox,intersects,datetime,q,filter}' AND NOT _strays THEN
        IF _rule = 'true' THEN
            RETURN _all;
        ELSIF _rule = '(private = ''{"public": true}'')' THEN
            RETURN _public;
        END IF;
    END IF;
    IF _everything AND _all >= context_estimated_count() THEN
        SELECT * INTO _stats FROM where_stats(_where, false, '{"context": "auto", "readonly": true}');
        RETURN coalesce(_stats.total_count, _stats.estimated_count);
    END IF;
    RETURN NULL;
END
$$;

-- Does what pgstac's search does, among the items that the caller may see (`item_rule`), and counts them. `_after` is the
-- collection and id of the item after which the page begins or, with `_back`, before which it ends. The result is null
-- if the caller may not see that item.
--
-- With a condition, pgstac's own search would read each item twice: for the count and for the page. This one reads it
-- once. Without a condition it reads only the page, because the collections have the count.
--
-- With `repaired` in the search, footprints are repaired while they are compared. Geomill stores only valid ones; others
-- come from pgstac's own tools, and make the plain comparison fail.
CREATE OR REPLACE FUNCTION catalogue.search_items(
    _search jsonb, _everything boolean, _platform text, _asset text, _after text[], _back boolean
) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path = pgstac, public
AS $$
DECLARE
    _names text[] := nullif(to_text_array(_search -> 'collections'), '{}');
    _limit integer := search_limit(_search);
    _rule text := catalogue.item_rule(_everything, _platform, _asset);
    _order text := sort_sqlorderby(_search, _back, '{collection,id}', _names);
    _filter text := cql2_query(_search -> 'filter', NULL, _names);
    _where text := format('%s AND %s', _rule, stac_search_to_where(_search - 'filter'));
    _later text := 'true';
    _anchor record;
    _matched bigint;
    _page jsonb;
    _more boolean;
BEGIN
    IF _search ? 'repaired' THEN
        _where := replace(_where, 'st_intersects(geometry,', 'st_intersects(catalogue.sound_place(geometry),');
        _filter := replace(_filter, 'st_intersects(geometry,', 'st_intersects(catalogue.sound_place(geometry),');
    END IF;
    IF _filter IS NOT NULL THEN
        _where := format('%s AND %s', _where, catalogue.guarded(_rule, _filter));
    END IF;
    IF _after IS NOT NULL THEN
        EXECUTE format('SELECT i AS item FROM items AS i WHERE collection = $1 AND id = $2 AND %s', _rule)
        INTO _anchor USING _after[1], _after[2];
        IF _anchor.item IS NULL THEN
            RETURN NULL;
        END IF;
        _later := get_token_filter(_search -> 'sortby', _anchor.item, _back, false, _names);
    END IF;
    _matched := catalogue.known_count(_search, _rule, _everything, _where);
    IF _matched IS NULL THEN
        EXECUTE format(
            $query$
                WITH found AS MATERIALIZED (
                    SELECT collection, id, row_number() OVER (ORDER BY %s) AS place, %s AS later FROM items WHERE %s
                ), page AS (
                    SELECT * FROM found WHERE later ORDER BY place LIMIT %s
                )
                SELECT (SELECT count(*) FROM found), jsonb_agg(catalogue.item_document(i.id, i.collection, i.geometry, i.content) ORDER BY p.place)
                FROM page AS p JOIN items AS i ON i.collection = p.collection AND i.id = p.id
            $query$, _order, _later, _where, _limit + 1
        ) INTO _matched, _page;
    ELSE
        EXECUTE format(
            $query$
                SELECT jsonb_agg(catalogue.item_document(i.id, i.collection, i.geometry, i.content))
                FROM (SELECT * FROM items WHERE %s AND %s ORDER BY %s LIMIT %s) AS i
            $query$,
            _where, CASE WHEN _search ? 'sortby' THEN catalogue.guarded(_rule, _later) ELSE _later END, _order, _limit + 1
        ) INTO _page;
    END IF;
    _page := coalesce(_page, '[]');
    _more := jsonb_array_length(_page) > _limit;
    _page := CASE WHEN _more THEN _page - -1 ELSE _page END;
    _page := CASE WHEN _back THEN coalesce(flip_jsonb_array(_page), '[]') ELSE _page END;
    RETURN jsonb_build_object(
        'features', _page,
        'numberMatched', nullif(_matched, -1),
        'next', CASE WHEN _more OR _back THEN page_token(_page -> -1 ->> 'collection', _page -> -1 ->> 'id') END,
        'prev', CASE WHEN CASE WHEN _back THEN _more ELSE _after IS NOT NULL END
                     THEN page_token(_page -> 0 ->> 'collection', _page -> 0 ->> 'id') END
    );
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
    priority smallint DEFAULT 0 NOT NULL,
    tenant varchar(64) DEFAULT '' NOT NULL,
    correlation_id varchar(64),
    submitted_by varchar(200),
    on_behalf_of varchar(200),
    callback_url varchar(512),
    idempotency_key varchar(64),
    workflow_id varchar(64) NOT NULL,
    input_params jsonb DEFAULT '{}'::jsonb NOT NULL,
    asset_id varchar(64),
    asset_revision integer,
    request_id varchar(64),
    purpose dagapp.job_purpose DEFAULT 'process' NOT NULL,
    retry_of varchar(64),
    workflow_version integer,
    definition_hash varchar(64),
    status dagapp.job_status DEFAULT 'pending' NOT NULL,
    result_data jsonb,
    error_message text,
    failed_node_id varchar(64),
    owner_id varchar(64),
    deadline_at timestamptz,
    submitted_at timestamptz DEFAULT now() NOT NULL,
    owner_epoch bigint DEFAULT 0 NOT NULL,
    owner_heartbeat_at timestamptz,
    node_summary jsonb,
    parked_at timestamptz,
    parked_reason text,
    paused_at timestamptz,
    run_number integer DEFAULT 1 NOT NULL,
    called_back_run integer DEFAULT 0 NOT NULL,
    details_deleted_at timestamptz,
    details_left boolean DEFAULT true NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    started_at timestamptz,
    completed_at timestamptz,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_jobs_pkey PRIMARY KEY (job_id),
    CONSTRAINT dag_jobs_completed_at CHECK ((status IN ('completed', 'failed', 'cancelled')) = (completed_at IS NOT NULL)),
    CONSTRAINT dag_jobs_started_at CHECK (status <> 'running' OR started_at IS NOT NULL),
    CONSTRAINT dag_jobs_pinned CHECK (definition_hash IS NOT NULL OR status IN ('failed', 'cancelled')),
    CONSTRAINT dag_jobs_priority CHECK (priority BETWEEN -5 AND 10),
    CONSTRAINT dag_jobs_definition_hash_fkey FOREIGN KEY (definition_hash) REFERENCES dagapp.dag_definitions (definition_hash) ON DELETE RESTRICT
) WITH (fillfactor = 70);

CREATE INDEX idx_dag_jobs_status ON dagapp.dag_jobs USING btree (status, created_at DESC);

CREATE INDEX idx_dag_jobs_workflow ON dagapp.dag_jobs USING btree (workflow_id, created_at DESC);

CREATE INDEX idx_dag_jobs_workflow_status ON dagapp.dag_jobs USING btree (workflow_id, status, created_at DESC);

CREATE INDEX idx_dag_jobs_created ON dagapp.dag_jobs USING btree (created_at DESC);

CREATE INDEX idx_dag_jobs_submitter ON dagapp.dag_jobs USING btree (submitted_by, created_at DESC) WHERE submitted_by IS NOT NULL;

CREATE INDEX idx_dag_jobs_owner ON dagapp.dag_jobs USING btree (owner_id) WHERE status IN ('pending', 'running');

CREATE INDEX idx_dag_jobs_deadline ON dagapp.dag_jobs USING btree (deadline_at) WHERE deadline_at IS NOT NULL AND completed_at IS NULL;

CREATE UNIQUE INDEX idx_dag_jobs_idempotency ON dagapp.dag_jobs USING btree (idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX idx_dag_jobs_correlation ON dagapp.dag_jobs USING btree (correlation_id, created_at DESC) WHERE correlation_id IS NOT NULL;

CREATE INDEX idx_dag_jobs_asset ON dagapp.dag_jobs USING btree (asset_id, created_at DESC) WHERE asset_id IS NOT NULL;

CREATE INDEX idx_dag_jobs_callback ON dagapp.dag_jobs USING btree (completed_at) WHERE callback_url IS NOT NULL AND completed_at IS NOT NULL AND called_back_run < run_number;

CREATE INDEX idx_dag_jobs_parked ON dagapp.dag_jobs USING btree (parked_at) WHERE parked_at IS NOT NULL;

CREATE INDEX idx_dag_jobs_details ON dagapp.dag_jobs USING btree (completed_at) WHERE completed_at IS NOT NULL AND details_left;

CREATE INDEX idx_dag_jobs_bare ON dagapp.dag_jobs USING btree (completed_at) WHERE NOT details_left AND asset_id IS NULL;

CREATE OR REPLACE TRIGGER dag_jobs_status_transitions
    AFTER UPDATE OF status ON dagapp.dag_jobs
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status AND NOT (
        (OLD.status = 'pending' AND NEW.status IN ('running', 'completed', 'failed', 'cancelled'))
        OR (OLD.status = 'running' AND NEW.status IN ('completed', 'failed', 'cancelled'))
        OR (OLD.status = 'failed' AND NEW.status IN ('running'))
        OR (OLD.status = 'cancelled' AND NEW.status IN ('running'))
    ))
    EXECUTE FUNCTION dagapp.refuse_transition('status');

CREATE OR REPLACE TRIGGER dag_jobs_forget
    AFTER DELETE ON dagapp.dag_jobs
    FOR EACH ROW
    EXECUTE FUNCTION dagapp.forget_job();

CREATE OR REPLACE TRIGGER dag_jobs_follow_new
    AFTER INSERT ON dagapp.dag_jobs
    FOR EACH ROW WHEN (NEW.asset_id IS NOT NULL)
    EXECUTE FUNCTION app.follow_job();

CREATE OR REPLACE TRIGGER dag_jobs_follow
    AFTER UPDATE OF status, node_summary ON dagapp.dag_jobs
    FOR EACH ROW WHEN (NEW.asset_id IS NOT NULL AND (OLD.status IS DISTINCT FROM NEW.status OR OLD.node_summary IS DISTINCT FROM NEW.node_summary))
    EXECUTE FUNCTION app.follow_job();

COMMENT ON COLUMN dagapp.dag_jobs.job_id IS 'Chosen at submission, so the submitter knows it before the job exists';

COMMENT ON COLUMN dagapp.dag_jobs.priority IS 'Higher is sooner';

COMMENT ON COLUMN dagapp.dag_jobs.tenant IS 'The platform that takes turns for this work; empty for geomill''s own';

COMMENT ON COLUMN dagapp.dag_jobs.on_behalf_of IS 'The person whom the submitter named; not verified';

COMMENT ON COLUMN dagapp.dag_jobs.input_params IS 'Validated inputs, defaults applied';

COMMENT ON COLUMN dagapp.dag_jobs.asset_id IS 'The asset that the job works for';

COMMENT ON COLUMN dagapp.dag_jobs.retry_of IS 'The job that this one repeats with changed inputs';

COMMENT ON COLUMN dagapp.dag_jobs.definition_hash IS 'The definition to which the job is pinned; null if it was refused at its claim';

COMMENT ON COLUMN dagapp.dag_jobs.result_data IS 'The evaluated outputs of the workflow';

COMMENT ON COLUMN dagapp.dag_jobs.error_message IS 'Why the job failed, in one sentence';

COMMENT ON COLUMN dagapp.dag_jobs.owner_id IS 'The orchestrator that owns the job';

COMMENT ON COLUMN dagapp.dag_jobs.deadline_at IS 'The job fails if it has not ended by then';

COMMENT ON COLUMN dagapp.dag_jobs.owner_epoch IS 'Raised at every change of owner; the fence compares it';

COMMENT ON COLUMN dagapp.dag_jobs.owner_heartbeat_at IS 'When the owner took the job; its heartbeat is in dag_instances';

COMMENT ON COLUMN dagapp.dag_jobs.node_summary IS 'Progress of a job of an asset; updated from time to time';

COMMENT ON COLUMN dagapp.dag_jobs.parked_at IS 'When the job was parked, because the database refused its owner''s decision';

COMMENT ON COLUMN dagapp.dag_jobs.parked_reason IS 'Why the job is parked, with a reference to the log';

COMMENT ON COLUMN dagapp.dag_jobs.paused_at IS 'While set, nothing new is dispatched';

COMMENT ON COLUMN dagapp.dag_jobs.run_number IS 'Every retry of the whole job raises it';

COMMENT ON COLUMN dagapp.dag_jobs.called_back_run IS 'The latest run whose end is in dag_callbacks';

COMMENT ON COLUMN dagapp.dag_jobs.details_deleted_at IS 'When the deletion of nodes, results, logs and events began; bars a retry';

COMMENT ON COLUMN dagapp.dag_jobs.details_left IS 'Whether any of these details are left';

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
    items_total integer,
    items_sent integer,
    dispatched_at timestamptz,
    started_at timestamptz,
    completed_at timestamptz,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_node_states_pkey PRIMARY KEY (job_id, node_id, item_index),
    CONSTRAINT dag_node_states_completed_at CHECK ((status IN ('completed', 'failed', 'skipped', 'cancelled')) = (completed_at IS NOT NULL)),
    CONSTRAINT dag_node_states_dispatched_at CHECK (status NOT IN ('dispatched', 'running', 'cancelled') OR dispatched_at IS NOT NULL),
    CONSTRAINT dag_node_states_item_index CHECK (item_index >= -1)
) WITH (fillfactor = 70);

CREATE OR REPLACE TRIGGER dag_node_states_status_transitions
    AFTER UPDATE OF status ON dagapp.dag_node_states
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

COMMENT ON COLUMN dagapp.dag_node_states.item_index IS 'The position in the fan-out''s list; -1 for a node';

COMMENT ON COLUMN dagapp.dag_node_states.task_id IS 'The task of the current attempt';

COMMENT ON COLUMN dagapp.dag_node_states.attempt IS 'Token of the current attempt; it only rises';

COMMENT ON COLUMN dagapp.dag_node_states.retry_count IS 'Attempts that counted against the retry policy';

COMMENT ON COLUMN dagapp.dag_node_states.output IS 'The value that the handler returned';

COMMENT ON COLUMN dagapp.dag_node_states.not_before IS 'When a retry may begin';

COMMENT ON COLUMN dagapp.dag_node_states.items_total IS 'The length of a fan-out''s list';

COMMENT ON COLUMN dagapp.dag_node_states.items_sent IS 'How many items of a fan-out were sent so far';

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
    handler_version varchar(64),
    metrics jsonb DEFAULT '{}'::jsonb NOT NULL,
    started_at timestamptz,
    reported_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_task_results_pkey PRIMARY KEY (task_id)
);

CREATE INDEX idx_dag_task_results_reported ON dagapp.dag_task_results USING brin (reported_at);

COMMENT ON TABLE dagapp.dag_task_results IS 'The result of an attempt that ended while it was the current one. Rows are only added.';

COMMENT ON COLUMN dagapp.dag_task_results.handler_version IS 'The code version of the handler that ran; null if none did';

CREATE TABLE dagapp.dag_inbox (
    sequence bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    owner_id varchar(64) DEFAULT '' NOT NULL,
    job_id varchar(64) NOT NULL,
    node_id varchar(64) DEFAULT '' NOT NULL,
    items integer[] DEFAULT '{-1}' NOT NULL,
    attempt bigint DEFAULT 0 NOT NULL,
    task_id varchar(200) DEFAULT '' NOT NULL,
    report dagapp.report NOT NULL,
    reason varchar(500),
    worker_id varchar(64),
    started_at timestamptz,
    CONSTRAINT dag_inbox_pkey PRIMARY KEY (owner_id, sequence)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

COMMENT ON TABLE dagapp.dag_inbox IS 'A report that the job''s owner has not taken yet. Workers insert the rows, the owner deletes them.';

COMMENT ON COLUMN dagapp.dag_inbox.owner_id IS 'The job''s owner when the report arrived; empty if it had none';

COMMENT ON COLUMN dagapp.dag_inbox.items IS 'Positions in the fan-out''s list; -1 alone for a node';

COMMENT ON COLUMN dagapp.dag_inbox.task_id IS 'The task whose result the owner must read; empty if there is none';

COMMENT ON COLUMN dagapp.dag_inbox.reason IS 'The reason for a command';

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

COMMENT ON TABLE dagapp.dag_checkpoints IS 'The place from which the next attempt can resume. There is one per node or item.';

COMMENT ON COLUMN dagapp.dag_checkpoints.attempt IS 'The attempt that saved it; an older attempt never overwrites a newer one';

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

CREATE INDEX idx_dag_task_logs_place ON dagapp.dag_task_logs USING btree (job_id, node_id, item_index, log_id);

COMMENT ON TABLE dagapp.dag_task_logs IS 'A line of a handler''s log. Rows are only added. They are not fenced: a line stays true after the attempt has lost its lease.';

CREATE TABLE dagapp.dag_queue (
    sequence bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    queue_name varchar(64) NOT NULL,
    message_id varchar(200) NOT NULL,
    body jsonb NOT NULL,
    priority smallint DEFAULT 0 NOT NULL,
    tenant varchar(64) DEFAULT '' NOT NULL,
    visible_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz,
    delivery_count integer DEFAULT 0 NOT NULL,
    losses integer DEFAULT 0 NOT NULL,
    on_trial boolean DEFAULT false NOT NULL,
    lease_token bigint,
    leased_by varchar(64),
    leased_until timestamptz,
    started_at timestamptz,
    progress double precision,
    progress_message varchar(200),
    enqueued_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_queue_pkey PRIMARY KEY (sequence),
    CONSTRAINT dag_queue_lease CHECK ((lease_token IS NULL) = (leased_until IS NULL)),
    CONSTRAINT dag_queue_priority CHECK (priority BETWEEN -5 AND 10)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE UNIQUE INDEX idx_dag_queue_message ON dagapp.dag_queue USING btree (queue_name, message_id);

CREATE INDEX idx_dag_queue_ready ON dagapp.dag_queue USING btree (queue_name, priority DESC, tenant DESC, sequence) WHERE lease_token IS NULL;

CREATE INDEX idx_dag_queue_expiry ON dagapp.dag_queue USING btree (expires_at) WHERE expires_at IS NOT NULL AND lease_token IS NULL;

CREATE INDEX idx_dag_queue_leased ON dagapp.dag_queue USING btree (leased_by) WHERE lease_token IS NOT NULL;

COMMENT ON TABLE dagapp.dag_queue IS 'A waiting or leased message. The table is hot: rows are inserted, leased and deleted within milliseconds.';

COMMENT ON COLUMN dagapp.dag_queue.message_id IS 'A message that is sent twice is stored once';

COMMENT ON COLUMN dagapp.dag_queue.tenant IS 'The platform that takes turns for this work; empty for geomill''s own';

COMMENT ON COLUMN dagapp.dag_queue.losses IS 'Workers that were lost while they ran it';

COMMENT ON COLUMN dagapp.dag_queue.on_trial IS 'Whether a loss of its worker is charged to this task alone';

COMMENT ON COLUMN dagapp.dag_queue.lease_token IS 'Greater at each delivery that is durably committed';

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

CREATE INDEX idx_dag_dead_letters_message ON dagapp.dag_dead_letters USING btree (message_id, sequence DESC);

COMMENT ON TABLE dagapp.dag_dead_letters IS 'A message that cannot be handled, kept with the reason until an operator deals with it.';

CREATE TABLE dagapp.dag_instances (
    instance_id varchar(64) NOT NULL,
    role dagapp.instance_role NOT NULL,
    hostname varchar(255) NOT NULL,
    pid integer NOT NULL,
    lock_key bigint NOT NULL,
    version varchar(64) NOT NULL,
    queues jsonb DEFAULT '[]'::jsonb NOT NULL,
    duties jsonb DEFAULT '{}'::jsonb NOT NULL,
    slots integer,
    counts jsonb DEFAULT '{}'::jsonb NOT NULL,
    looked_at timestamptz,
    started_at timestamptz DEFAULT now() NOT NULL,
    heartbeat_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_instances_pkey PRIMARY KEY (instance_id)
);

CREATE INDEX idx_dag_instances_role ON dagapp.dag_instances USING btree (role, heartbeat_at DESC);

COMMENT ON COLUMN dagapp.dag_instances.lock_key IS 'Advisory lock that the process holds while it lives';

COMMENT ON COLUMN dagapp.dag_instances.queues IS 'The queues that it serves';

COMMENT ON COLUMN dagapp.dag_instances.duties IS 'The last error of each duty that ever failed';

COMMENT ON COLUMN dagapp.dag_instances.slots IS 'How many tasks a worker runs at once';

COMMENT ON COLUMN dagapp.dag_instances.counts IS 'Its work since its start, as of its heartbeat';

COMMENT ON COLUMN dagapp.dag_instances.looked_at IS 'When it last looked for work';

CREATE TABLE dagapp.dag_instance_handlers (
    instance_id varchar(64) NOT NULL,
    handlers jsonb DEFAULT '[]'::jsonb NOT NULL,
    versions jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT dag_instance_handlers_pkey PRIMARY KEY (instance_id),
    CONSTRAINT dag_instance_handlers_instance_id_fkey FOREIGN KEY (instance_id) REFERENCES dagapp.dag_instances (instance_id) ON DELETE CASCADE
);

COMMENT ON TABLE dagapp.dag_instance_handlers IS 'The handlers that a worker has. Written at its start, and apart from the row that each heartbeat writes again.';

COMMENT ON COLUMN dagapp.dag_instance_handlers.handlers IS 'Names of handlers, former names included';

COMMENT ON COLUMN dagapp.dag_instance_handlers.versions IS 'The code version of each handler';

CREATE TABLE dagapp.dag_unserved_queues (
    queue_name varchar(64) NOT NULL,
    since timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_unserved_queues_pkey PRIMARY KEY (queue_name)
);

COMMENT ON TABLE dagapp.dag_unserved_queues IS 'A queue in which messages wait and which no process serves. Orchestrators add and remove the rows.';

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

COMMENT ON COLUMN dagapp.dag_schedules.next_due_at IS 'The first due time that has not been handled';

COMMENT ON COLUMN dagapp.dag_schedules.last_error IS 'Why it could not fire; null after the next firing';

COMMENT ON COLUMN dagapp.dag_schedules.held_until IS 'When to try again, after it could not fire at its due time';

COMMENT ON COLUMN dagapp.dag_schedules.open_jobs IS 'Its jobs that had not ended when it last fired';

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
    last_status integer,
    platform_id varchar(50),
    sent_again_at timestamptz,
    created_at timestamptz DEFAULT now() NOT NULL,
    ended_at timestamptz,
    CONSTRAINT dag_callbacks_pkey PRIMARY KEY (delivery_id),
    CONSTRAINT dag_callbacks_ended_at CHECK ((status = 'pending') = (ended_at IS NULL)),
    CONSTRAINT dag_callbacks_job_id_fkey FOREIGN KEY (job_id) REFERENCES dagapp.dag_jobs (job_id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX idx_dag_callbacks_job ON dagapp.dag_callbacks USING btree (job_id, run_number);

CREATE INDEX idx_dag_callbacks_due ON dagapp.dag_callbacks USING btree (due_at) WHERE status = 'pending';

CREATE INDEX idx_dag_callbacks_created ON dagapp.dag_callbacks USING btree (created_at DESC, delivery_id DESC);

CREATE INDEX idx_dag_callbacks_platform ON dagapp.dag_callbacks USING btree (platform_id, created_at DESC, delivery_id DESC) WHERE platform_id IS NOT NULL;

COMMENT ON TABLE dagapp.dag_callbacks IS 'A call to make because a job has ended. During an attempt `due_at` is later than the end of the attempt.';

COMMENT ON COLUMN dagapp.dag_callbacks.delivery_id IS 'Sent with the call; the same for every attempt';

COMMENT ON COLUMN dagapp.dag_callbacks.payload IS 'The content of the call, as of the job''s end';

COMMENT ON COLUMN dagapp.dag_callbacks.attempts IS 'Raised when an attempt begins, so that a late one cannot write';

COMMENT ON COLUMN dagapp.dag_callbacks.last_status IS 'HTTP status of the latest attempt, if it had a response';

COMMENT ON COLUMN dagapp.dag_callbacks.platform_id IS 'The platform whose request the job works for';

COMMENT ON COLUMN dagapp.dag_callbacks.sent_again_at IS 'When somebody asked to send it again';

CREATE TABLE dagapp.dag_tallies (
    name varchar(64) NOT NULL,
    bucket double precision NOT NULL,
    value double precision DEFAULT 0.0 NOT NULL,
    CONSTRAINT dag_tallies_pkey PRIMARY KEY (name, bucket)
) WITH (fillfactor = 50);

COMMENT ON TABLE dagapp.dag_tallies IS 'A counter or one bucket of a histogram. Processes add to it every few seconds.';

COMMENT ON COLUMN dagapp.dag_tallies.bucket IS 'Upper bound in seconds; 0 for a counter, -1 for a histogram''s sum';

CREATE TABLE dagapp.dag_circuits (
    handler varchar(64) NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    error_code varchar(64) DEFAULT '' NOT NULL,
    error_message text DEFAULT '' NOT NULL,
    opened_at timestamptz,
    probe_at timestamptz,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_circuits_pkey PRIMARY KEY (handler),
    CONSTRAINT dag_circuits_open CHECK ((opened_at IS NULL) = (probe_at IS NULL))
) WITH (fillfactor = 50);

COMMENT ON TABLE dagapp.dag_circuits IS 'The consecutive failures of a handler, over all workers. A handler without a row has none.';

COMMENT ON COLUMN dagapp.dag_circuits.failures IS 'In a row, with the same code';

COMMENT ON COLUMN dagapp.dag_circuits.opened_at IS 'Null while the circuit is closed';

COMMENT ON COLUMN dagapp.dag_circuits.probe_at IS 'When the next task may run';

CREATE TABLE dagapp.dag_stage_jobs (
    job_id varchar(64) NOT NULL,
    attempt integer DEFAULT 1 NOT NULL,
    run_id varchar(64) NOT NULL,
    job_type varchar(64) NOT NULL,
    parameters jsonb DEFAULT '{}'::jsonb NOT NULL,
    submitted_by varchar(200),
    submitted_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT dag_stage_jobs_pkey PRIMARY KEY (job_id, attempt)
);

CREATE UNIQUE INDEX idx_dag_stage_jobs_run ON dagapp.dag_stage_jobs USING btree (run_id);

CREATE INDEX idx_dag_stage_jobs_submitted ON dagapp.dag_stage_jobs USING btree (submitted_at DESC, job_id);

COMMENT ON TABLE dagapp.dag_stage_jobs IS 'One attempt at a stage job.';

COMMENT ON COLUMN dagapp.dag_stage_jobs.job_id IS 'SHA-256 of job type and parameters';

COMMENT ON COLUMN dagapp.dag_stage_jobs.run_id IS 'The job of the engine';

COMMENT ON COLUMN dagapp.dag_stage_jobs.parameters IS 'Validated, defaults applied';

CREATE TABLE app.platforms (
    platform_id varchar(50) NOT NULL,
    display_name varchar(100) NOT NULL,
    description varchar(2000),
    required_refs jsonb DEFAULT '[]'::jsonb NOT NULL,
    optional_refs jsonb DEFAULT '[]'::jsonb NOT NULL,
    workflows jsonb,
    containers jsonb DEFAULT '[]'::jsonb NOT NULL,
    is_active boolean DEFAULT true NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT platforms_pkey PRIMARY KEY (platform_id)
);

CREATE INDEX idx_platforms_active ON app.platforms USING btree (is_active) WHERE is_active;

COMMENT ON TABLE app.platforms IS 'A partner application, and the identifiers that it must and may give.';

COMMENT ON COLUMN app.platforms.required_refs IS 'Keys that platform_refs must have; the first one groups assets';

COMMENT ON COLUMN app.platforms.optional_refs IS 'Other keys that platform_refs may have';

COMMENT ON COLUMN app.platforms.workflows IS 'Workflows that its partners may name; if absent, the configured ones';

COMMENT ON COLUMN app.platforms.containers IS 'Containers in bronze that its partners may submit from, besides its own';

COMMENT ON COLUMN app.platforms.is_active IS 'Whether it may submit';

INSERT INTO app.platforms (platform_id, display_name, description, required_refs, containers) VALUES ('ddh', 'Data Distribution Hub', 'Datasets, their resources, and versions of these', '["dataset_id", "resource_id", "version_id"]', '["uploads"]') ON CONFLICT DO NOTHING;

INSERT INTO app.platforms (platform_id, display_name, description, required_refs) VALUES ('arcgis', 'ArcGIS', 'Items of an ArcGIS portal, and their layers', '["item_id", "layer_index"]') ON CONFLICT DO NOTHING;

CREATE TABLE app.asset_collections (
    stac_collection_id varchar(200) NOT NULL,
    platform_id varchar(50) NOT NULL,
    group_ref varchar(410) NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT asset_collections_pkey PRIMARY KEY (stac_collection_id)
);

CREATE UNIQUE INDEX idx_asset_collections_group ON app.asset_collections USING btree (platform_id, group_ref);

COMMENT ON TABLE app.asset_collections IS 'A STAC collection and the group of assets that it belongs to.';

COMMENT ON COLUMN app.asset_collections.group_ref IS 'As JSON: 1 and "1" are two groups';

CREATE TABLE app.geospatial_assets (
    asset_id varchar(64) NOT NULL,
    platform_id varchar(50) NOT NULL,
    platform_refs jsonb NOT NULL,
    data_type app.data_type NOT NULL,
    table_stem varchar(64) NOT NULL,
    blob_stem varchar(400) NOT NULL,
    stac_item_id varchar(200) NOT NULL,
    stac_collection_id varchar(200) NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    proposed_clearance app.clearance_state,
    last_request_id varchar(64),
    workflow_id varchar(64),
    priority smallint DEFAULT 5 NOT NULL,
    dataset_id text GENERATED ALWAYS AS (platform_refs ->> 'dataset_id') STORED,
    resource_id text GENERATED ALWAYS AS (platform_refs ->> 'resource_id') STORED,
    version_id text GENERATED ALWAYS AS (platform_refs ->> 'version_id') STORED,
    revision_opened_at timestamptz DEFAULT now() NOT NULL,
    served_revision integer,
    table_name varchar(63),
    blob_path varchar(500),
    outputs jsonb,
    warnings jsonb DEFAULT '[]'::jsonb NOT NULL,
    content_hash varchar(128),
    source_file_hash varchar(64),
    output_file_hash varchar(64),
    data_deleted_through integer DEFAULT 0 NOT NULL,
    delete_run_id varchar(100),
    withdrawn_through integer DEFAULT 0 NOT NULL,
    approval_state app.approval_state DEFAULT 'pending_review' NOT NULL,
    reviewer varchar(200),
    reviewed_on_behalf_of varchar(200),
    reviewed_at timestamptz,
    rejection_reason text,
    clearance_state app.clearance_state DEFAULT 'uncleared' NOT NULL,
    cleared_at timestamptz,
    cleared_by varchar(200),
    made_public_at timestamptz,
    made_public_by varchar(200),
    kept_public_revision integer,
    public_revision integer GENERATED ALWAYS AS (CASE WHEN deleted_at IS NOT NULL THEN NULL WHEN approval_state = 'approved' AND clearance_state = 'public' THEN revision ELSE kept_public_revision END) STORED,
    adf_run_id varchar(100),
    external_revision integer,
    external_files jsonb,
    external_run_id varchar(100),
    workflow_version integer,
    current_job_id varchar(64),
    job_count integer DEFAULT 0 NOT NULL,
    processing_status app.processing_status DEFAULT 'pending' NOT NULL,
    processing_started_at timestamptz,
    processing_completed_at timestamptz,
    estimated_completion_at timestamptz,
    last_error varchar(2000),
    node_summary jsonb,
    deleted_at timestamptz,
    deleted_by varchar(200),
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT geospatial_assets_pkey PRIMARY KEY (asset_id),
    CONSTRAINT assets_revision CHECK (revision >= 1 AND served_revision BETWEEN 1 AND revision),
    CONSTRAINT assets_priority CHECK (priority BETWEEN 1 AND 10),
    CONSTRAINT assets_cleared CHECK (clearance_state = 'uncleared' OR approval_state = 'approved'),
    CONSTRAINT assets_rejected CHECK (approval_state <> 'rejected' OR rejection_reason IS NOT NULL),
    CONSTRAINT assets_deleted CHECK ((deleted_at IS NULL) = (deleted_by IS NULL)),
    CONSTRAINT assets_kept_public CHECK (kept_public_revision < revision),
    CONSTRAINT assets_approved CHECK (approval_state <> 'approved' OR coalesce(served_revision = revision, false)),
    CONSTRAINT geospatial_assets_platform_id_fkey FOREIGN KEY (platform_id) REFERENCES app.platforms (platform_id) ON DELETE RESTRICT
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX idx_assets_table_stem ON app.geospatial_assets USING btree (table_stem);

CREATE UNIQUE INDEX idx_assets_blob_stem ON app.geospatial_assets USING btree (blob_stem);

CREATE UNIQUE INDEX idx_assets_stac_item ON app.geospatial_assets USING btree (stac_item_id);

CREATE INDEX idx_assets_refs ON app.geospatial_assets USING gin (platform_refs jsonb_path_ops);

CREATE INDEX idx_assets_text ON app.geospatial_assets USING gin ((lower(jsonb_path_query_array(platform_refs, '$.*')::text)) gin_trgm_ops);

CREATE INDEX idx_assets_title ON app.geospatial_assets USING gin ((lower(outputs #>> '{dataset_metadata,title}')) gin_trgm_ops);

CREATE INDEX idx_assets_platform ON app.geospatial_assets USING btree (platform_id, created_at DESC, asset_id DESC);

CREATE INDEX idx_assets_created ON app.geospatial_assets USING btree (created_at DESC, asset_id DESC);

CREATE INDEX idx_assets_collection ON app.geospatial_assets USING btree (stac_collection_id);

CREATE INDEX idx_assets_approval ON app.geospatial_assets USING btree (approval_state, created_at DESC, asset_id DESC) WHERE deleted_at IS NULL;

CREATE INDEX idx_assets_clearance ON app.geospatial_assets USING btree (clearance_state, created_at DESC, asset_id DESC) WHERE deleted_at IS NULL;

CREATE INDEX idx_assets_processing ON app.geospatial_assets USING btree (processing_status, created_at DESC, asset_id DESC);

CREATE INDEX idx_assets_workflow ON app.geospatial_assets USING btree (workflow_id, created_at DESC, asset_id DESC);

CREATE INDEX idx_assets_current_job ON app.geospatial_assets USING btree (current_job_id);

CREATE INDEX idx_assets_stuck ON app.geospatial_assets USING btree (processing_started_at) WHERE processing_status = 'processing';

CREATE INDEX idx_assets_failed ON app.geospatial_assets USING btree (updated_at DESC) WHERE processing_status = 'failed' AND deleted_at IS NULL;

CREATE INDEX idx_assets_completed ON app.geospatial_assets USING btree (processing_completed_at) WHERE processing_status = 'completed';

CREATE INDEX idx_assets_waiting ON app.geospatial_assets USING btree (processing_completed_at, asset_id) WHERE approval_state = 'pending_review' AND processing_status = 'completed' AND deleted_at IS NULL;

CREATE INDEX idx_assets_retried ON app.geospatial_assets USING btree (job_count DESC) WHERE job_count > 1;

CREATE INDEX idx_assets_export ON app.geospatial_assets USING btree (adf_run_id) WHERE adf_run_id IS NOT NULL;

CREATE OR REPLACE TRIGGER geospatial_assets_processing_status_transitions
    AFTER UPDATE OF processing_status ON app.geospatial_assets
    FOR EACH ROW WHEN (OLD.processing_status IS DISTINCT FROM NEW.processing_status AND NOT (
        (OLD.processing_status = 'pending' AND NEW.processing_status IN ('processing', 'completed', 'failed'))
        OR (OLD.processing_status = 'processing' AND NEW.processing_status IN ('pending', 'completed', 'failed'))
        OR (OLD.processing_status = 'completed' AND NEW.processing_status IN ('pending', 'processing', 'failed'))
        OR (OLD.processing_status = 'failed' AND NEW.processing_status IN ('pending', 'processing', 'completed'))
    ))
    EXECUTE FUNCTION app.refuse_transition('processing_status');

CREATE OR REPLACE TRIGGER geospatial_assets_approval_state_transitions
    AFTER UPDATE OF approval_state ON app.geospatial_assets
    FOR EACH ROW WHEN (OLD.approval_state IS DISTINCT FROM NEW.approval_state AND NOT (
        (OLD.approval_state = 'pending_review' AND NEW.approval_state IN ('approved', 'rejected'))
        OR (OLD.approval_state = 'approved' AND NEW.approval_state IN ('pending_review', 'rejected'))
        OR (OLD.approval_state = 'rejected' AND NEW.approval_state IN ('pending_review'))
    ))
    EXECUTE FUNCTION app.refuse_transition('approval_state');

CREATE OR REPLACE TRIGGER geospatial_assets_clearance_state_transitions
    AFTER UPDATE OF clearance_state ON app.geospatial_assets
    FOR EACH ROW WHEN (OLD.clearance_state IS DISTINCT FROM NEW.clearance_state AND NOT (
        (OLD.clearance_state = 'uncleared' AND NEW.clearance_state IN ('ouo', 'public'))
        OR (OLD.clearance_state = 'ouo' AND NEW.clearance_state IN ('uncleared', 'public'))
        OR (OLD.clearance_state = 'public' AND NEW.clearance_state IN ('uncleared', 'ouo'))
    ))
    EXECUTE FUNCTION app.refuse_transition('clearance_state');

CREATE OR REPLACE TRIGGER geospatial_assets_execution
    BEFORE UPDATE ON app.geospatial_assets
    FOR EACH ROW WHEN ((OLD.processing_status IS DISTINCT FROM NEW.processing_status OR OLD.processing_started_at IS DISTINCT FROM NEW.processing_started_at OR OLD.processing_completed_at IS DISTINCT FROM NEW.processing_completed_at OR OLD.estimated_completion_at IS DISTINCT FROM NEW.estimated_completion_at OR OLD.last_error IS DISTINCT FROM NEW.last_error OR OLD.node_summary IS DISTINCT FROM NEW.node_summary OR OLD.current_job_id IS DISTINCT FROM NEW.current_job_id OR OLD.job_count IS DISTINCT FROM NEW.job_count OR OLD.workflow_version IS DISTINCT FROM NEW.workflow_version OR OLD.served_revision IS DISTINCT FROM NEW.served_revision OR OLD.table_name IS DISTINCT FROM NEW.table_name OR OLD.blob_path IS DISTINCT FROM NEW.blob_path OR OLD.outputs IS DISTINCT FROM NEW.outputs OR OLD.warnings IS DISTINCT FROM NEW.warnings OR OLD.content_hash IS DISTINCT FROM NEW.content_hash OR OLD.source_file_hash IS DISTINCT FROM NEW.source_file_hash OR OLD.output_file_hash IS DISTINCT FROM NEW.output_file_hash OR OLD.external_revision IS DISTINCT FROM NEW.external_revision OR OLD.external_files IS DISTINCT FROM NEW.external_files OR OLD.external_run_id IS DISTINCT FROM NEW.external_run_id) AND NEW.revision <> OLD.revision + 1 AND NOT (pg_trigger_depth() > 0))
    EXECUTE FUNCTION app.refuse_change('execution state follows the job; the platform sets it only by opening a revision');

CREATE OR REPLACE TRIGGER geospatial_assets_business
    BEFORE UPDATE ON app.geospatial_assets
    FOR EACH ROW WHEN ((OLD.revision IS DISTINCT FROM NEW.revision OR OLD.proposed_clearance IS DISTINCT FROM NEW.proposed_clearance OR OLD.last_request_id IS DISTINCT FROM NEW.last_request_id OR OLD.workflow_id IS DISTINCT FROM NEW.workflow_id OR OLD.priority IS DISTINCT FROM NEW.priority OR OLD.approval_state IS DISTINCT FROM NEW.approval_state OR OLD.reviewer IS DISTINCT FROM NEW.reviewer OR OLD.reviewed_on_behalf_of IS DISTINCT FROM NEW.reviewed_on_behalf_of OR OLD.reviewed_at IS DISTINCT FROM NEW.reviewed_at OR OLD.rejection_reason IS DISTINCT FROM NEW.rejection_reason OR OLD.clearance_state IS DISTINCT FROM NEW.clearance_state OR OLD.cleared_at IS DISTINCT FROM NEW.cleared_at OR OLD.cleared_by IS DISTINCT FROM NEW.cleared_by OR OLD.made_public_at IS DISTINCT FROM NEW.made_public_at OR OLD.made_public_by IS DISTINCT FROM NEW.made_public_by OR OLD.adf_run_id IS DISTINCT FROM NEW.adf_run_id OR OLD.deleted_at IS DISTINCT FROM NEW.deleted_at OR OLD.deleted_by IS DISTINCT FROM NEW.deleted_by OR OLD.data_deleted_through IS DISTINCT FROM NEW.data_deleted_through OR OLD.withdrawn_through IS DISTINCT FROM NEW.withdrawn_through OR OLD.kept_public_revision IS DISTINCT FROM NEW.kept_public_revision OR OLD.delete_run_id IS DISTINCT FROM NEW.delete_run_id) AND pg_trigger_depth() > 0)
    EXECUTE FUNCTION app.refuse_change('a job must not change what people decide');

CREATE OR REPLACE TRIGGER geospatial_assets_identity
    BEFORE UPDATE ON app.geospatial_assets
    FOR EACH ROW WHEN ((OLD.asset_id IS DISTINCT FROM NEW.asset_id OR OLD.platform_id IS DISTINCT FROM NEW.platform_id OR OLD.platform_refs IS DISTINCT FROM NEW.platform_refs OR OLD.data_type IS DISTINCT FROM NEW.data_type OR OLD.table_stem IS DISTINCT FROM NEW.table_stem OR OLD.blob_stem IS DISTINCT FROM NEW.blob_stem OR OLD.stac_item_id IS DISTINCT FROM NEW.stac_item_id OR OLD.stac_collection_id IS DISTINCT FROM NEW.stac_collection_id))
    EXECUTE FUNCTION app.refuse_change('the identity never changes');

CREATE OR REPLACE TRIGGER geospatial_assets_revisions
    BEFORE UPDATE OF revision ON app.geospatial_assets
    FOR EACH ROW WHEN (NEW.revision NOT IN (OLD.revision, OLD.revision + 1))
    EXECUTE FUNCTION app.refuse_change('revisions go up, one by one');

CREATE OR REPLACE TRIGGER geospatial_assets_kept
    BEFORE DELETE ON app.geospatial_assets
    FOR EACH ROW
    EXECUTE FUNCTION app.refuse_change('assets are never deleted; unpublish sets deleted_at');

CREATE OR REPLACE TRIGGER geospatial_assets_follow
    AFTER UPDATE ON app.geospatial_assets
    FOR EACH ROW WHEN ((OLD.served_revision IS DISTINCT FROM NEW.served_revision OR OLD.outputs IS DISTINCT FROM NEW.outputs OR OLD.approval_state IS DISTINCT FROM NEW.approval_state OR OLD.clearance_state IS DISTINCT FROM NEW.clearance_state OR OLD.deleted_at IS DISTINCT FROM NEW.deleted_at OR OLD.data_deleted_through IS DISTINCT FROM NEW.data_deleted_through OR OLD.withdrawn_through IS DISTINCT FROM NEW.withdrawn_through OR OLD.kept_public_revision IS DISTINCT FROM NEW.kept_public_revision))
    EXECUTE FUNCTION app.follow_asset();

COMMENT ON TABLE app.geospatial_assets IS 'One thing that a partner publishes: its identity, its outputs and its four independent states.';

COMMENT ON COLUMN app.geospatial_assets.asset_id IS 'The first 32 characters of the SHA-256 of platform and identifiers';

COMMENT ON COLUMN app.geospatial_assets.platform_refs IS 'The partner''s own identifiers';

COMMENT ON COLUMN app.geospatial_assets.table_stem IS 'The beginning of the table names of its revisions';

COMMENT ON COLUMN app.geospatial_assets.blob_stem IS 'The beginning of the paths of its revisions';

COMMENT ON COLUMN app.geospatial_assets.revision IS 'Every overwrite and rollback raises it';

COMMENT ON COLUMN app.geospatial_assets.proposed_clearance IS 'The submitter''s proposal; it has no effect by itself';

COMMENT ON COLUMN app.geospatial_assets.priority IS '1 is first';

COMMENT ON COLUMN app.geospatial_assets.served_revision IS 'The revision to which table_name, blob_path and outputs belong';

COMMENT ON COLUMN app.geospatial_assets.outputs IS 'The result of the job that made the served revision';

COMMENT ON COLUMN app.geospatial_assets.content_hash IS 'SHA-256 of the source of the served revision';

COMMENT ON COLUMN app.geospatial_assets.data_deleted_through IS 'Outputs up to this revision are deleted, or will be';

COMMENT ON COLUMN app.geospatial_assets.delete_run_id IS 'The latest job that deletes outputs';

COMMENT ON COLUMN app.geospatial_assets.withdrawn_through IS 'Revisions up to this one were revoked or unpublished, and are not served again';

COMMENT ON COLUMN app.geospatial_assets.reviewed_on_behalf_of IS 'The person whom the reviewer named; not verified';

COMMENT ON COLUMN app.geospatial_assets.kept_public_revision IS 'The public revision that an overwrite or rollback left public';

COMMENT ON COLUMN app.geospatial_assets.public_revision IS 'The revision that everybody may see';

COMMENT ON COLUMN app.geospatial_assets.adf_run_id IS 'The latest job that exports or withdraws the asset';

COMMENT ON COLUMN app.geospatial_assets.external_revision IS 'The revision in the external zone';

COMMENT ON COLUMN app.geospatial_assets.external_run_id IS 'The export or withdrawal that completed last and set external_revision';

COMMENT ON COLUMN app.geospatial_assets.current_job_id IS 'The job of the current revision, once it has begun';

COMMENT ON COLUMN app.geospatial_assets.job_count IS 'Runs of jobs, retries included, over all revisions';

CREATE TABLE app.platform_requests (
    request_id varchar(64) NOT NULL,
    platform_id varchar(50) NOT NULL,
    platform_refs jsonb NOT NULL,
    data_type app.data_type NOT NULL,
    container_name varchar(200) NOT NULL,
    file_names jsonb DEFAULT '[]'::jsonb NOT NULL,
    overwrite boolean DEFAULT false NOT NULL,
    workflow_id varchar(64) NOT NULL,
    processing_options jsonb DEFAULT '{}'::jsonb NOT NULL,
    metadata jsonb,
    clearance_level app.clearance_state,
    priority smallint DEFAULT 5 NOT NULL,
    callback_url varchar(512),
    correlation_id varchar(64),
    idempotency_key varchar(64),
    asset_id varchar(64) NOT NULL,
    revision integer NOT NULL,
    submitted_by varchar(200) NOT NULL,
    on_behalf_of varchar(200),
    job_id varchar(64) NOT NULL,
    status app.request_status DEFAULT 'accepted' NOT NULL,
    retry_count integer DEFAULT 0 NOT NULL,
    last_error text,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT platform_requests_pkey PRIMARY KEY (request_id),
    CONSTRAINT platform_requests_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES app.geospatial_assets (asset_id) ON DELETE RESTRICT
);

CREATE INDEX idx_requests_asset ON app.platform_requests USING btree (asset_id, created_at DESC);

CREATE UNIQUE INDEX idx_requests_job ON app.platform_requests USING btree (job_id);

CREATE INDEX idx_requests_created ON app.platform_requests USING btree (created_at DESC);

CREATE INDEX idx_requests_files ON app.platform_requests USING gin (file_names);

CREATE INDEX idx_requests_open ON app.platform_requests USING btree (status) WHERE status IN ('accepted', 'processing');

CREATE UNIQUE INDEX idx_requests_idempotency ON app.platform_requests USING btree (platform_id, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE OR REPLACE TRIGGER platform_requests_order
    BEFORE UPDATE ON app.platform_requests
    FOR EACH ROW WHEN ((OLD.request_id IS DISTINCT FROM NEW.request_id OR OLD.asset_id IS DISTINCT FROM NEW.asset_id OR OLD.revision IS DISTINCT FROM NEW.revision OR OLD.platform_refs IS DISTINCT FROM NEW.platform_refs OR OLD.processing_options IS DISTINCT FROM NEW.processing_options OR OLD.file_names IS DISTINCT FROM NEW.file_names OR OLD.metadata IS DISTINCT FROM NEW.metadata))
    EXECUTE FUNCTION app.refuse_change('the order of a request never changes');

CREATE OR REPLACE TRIGGER platform_requests_follow
    AFTER UPDATE OF job_id ON app.platform_requests
    FOR EACH ROW WHEN (OLD.job_id IS DISTINCT FROM NEW.job_id)
    EXECUTE FUNCTION app.follow_request();

COMMENT ON TABLE app.platform_requests IS 'A work order of a partner and its state.';

COMMENT ON COLUMN app.platform_requests.metadata IS 'Title, licence, providers and the like, of the revision';

COMMENT ON COLUMN app.platform_requests.revision IS 'The revision that the request is for';

COMMENT ON COLUMN app.platform_requests.on_behalf_of IS 'The person whom the submitter named; not verified';

COMMENT ON COLUMN app.platform_requests.job_id IS 'The latest job of the request; its row exists once an orchestrator has claimed it';

CREATE TABLE app.asset_revisions (
    revision_id uuid DEFAULT gen_random_uuid() NOT NULL,
    asset_id varchar(64) NOT NULL,
    revision integer NOT NULL,
    job_id varchar(64),
    request_id varchar(64),
    workflow_id varchar(64),
    workflow_version integer,
    processing_status_at_supersession app.processing_status NOT NULL,
    approval_state_at_supersession app.approval_state NOT NULL,
    clearance_state_at_supersession app.clearance_state NOT NULL,
    reviewer_at_supersession varchar(200),
    content_hash varchar(128),
    table_name varchar(63),
    blob_path varchar(500),
    outputs jsonb,
    output_file_hash varchar(64),
    deleted_at timestamptz,
    created_at timestamptz NOT NULL,
    superseded_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT asset_revisions_pkey PRIMARY KEY (revision_id),
    CONSTRAINT asset_revisions_once UNIQUE (asset_id, revision),
    CONSTRAINT asset_revisions_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES app.geospatial_assets (asset_id) ON DELETE RESTRICT
);

CREATE INDEX idx_revisions_superseded ON app.asset_revisions USING btree (superseded_at DESC);

CREATE OR REPLACE TRIGGER asset_revisions_append_only
    BEFORE UPDATE OR DELETE ON app.asset_revisions
    FOR EACH ROW
    EXECUTE FUNCTION app.refuse_change('its rows are only added to, never changed or deleted');

CREATE OR REPLACE TRIGGER asset_revisions_no_truncate
    BEFORE TRUNCATE ON app.asset_revisions
    FOR EACH STATEMENT
    EXECUTE FUNCTION app.refuse_change('its rows are only added to, never changed or deleted');

COMMENT ON TABLE app.asset_revisions IS 'A revision of an asset as it was when the next one replaced it.';

COMMENT ON COLUMN app.asset_revisions.job_id IS 'None if it was superseded before a job began';

COMMENT ON COLUMN app.asset_revisions.outputs IS 'None if it never completed';

COMMENT ON COLUMN app.asset_revisions.deleted_at IS 'Set if it had been unpublished';

CREATE TABLE app.asset_leftovers (
    asset_id varchar(64) NOT NULL,
    revision integer NOT NULL,
    job_id varchar(64),
    deleted_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT asset_leftovers_pkey PRIMARY KEY (asset_id, revision),
    CONSTRAINT asset_leftovers_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES app.geospatial_assets (asset_id) ON DELETE RESTRICT
);

COMMENT ON TABLE app.asset_leftovers IS 'A revision that failed, was cancelled or was superseded, and whose files and tables were deleted.';

COMMENT ON COLUMN app.asset_leftovers.job_id IS 'The job that made the data; a retry may make the revision again';

CREATE TABLE app.asset_styles (
    asset_id varchar(64) NOT NULL,
    name varchar(63) NOT NULL,
    is_default boolean DEFAULT false NOT NULL,
    style jsonb NOT NULL,
    updated_by varchar(200) NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT asset_styles_pkey PRIMARY KEY (asset_id, name),
    CONSTRAINT asset_styles_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES app.geospatial_assets (asset_id) ON DELETE RESTRICT
);

CREATE UNIQUE INDEX idx_asset_styles_default ON app.asset_styles USING btree (asset_id) WHERE is_default;

COMMENT ON TABLE app.asset_styles IS 'A named style of an asset. At most one of them is the default.';

COMMENT ON COLUMN app.asset_styles.style IS 'A `RasterStyle` or `VectorStyle`';

CREATE TABLE app.extracts (
    extract_id varchar(64) NOT NULL,
    asset_id varchar(64) NOT NULL,
    revision integer NOT NULL,
    withdrawn_through integer NOT NULL,
    ordered_by varchar(200) NOT NULL,
    file_name varchar(200) NOT NULL,
    media_type varchar(100) NOT NULL,
    work jsonb NOT NULL,
    most_bytes bigint NOT NULL,
    job_id varchar(64) NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz NOT NULL,
    removing boolean DEFAULT false NOT NULL,
    CONSTRAINT extracts_pkey PRIMARY KEY (extract_id),
    CONSTRAINT extracts_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES app.geospatial_assets (asset_id) ON DELETE RESTRICT
);

CREATE INDEX idx_extracts_caller ON app.extracts USING btree (ordered_by);

CREATE INDEX idx_extracts_asset ON app.extracts USING btree (asset_id);

COMMENT ON TABLE app.extracts IS 'A file that a job writes for a caller. It goes when its time is over, or when its revision goes.';

COMMENT ON COLUMN app.extracts.withdrawn_through IS 'That of the asset at the order; a withdrawal since then ends the extract';

COMMENT ON COLUMN app.extracts.ordered_by IS 'The caller whose limits count it';

COMMENT ON COLUMN app.extracts.work IS 'The order that the job carries out, without credentials';

COMMENT ON COLUMN app.extracts.removing IS 'Whether its file is being deleted; nobody gets it any more';

CREATE TABLE app.uploads (
    upload_id varchar(64) NOT NULL,
    platform_id varchar(50) NOT NULL,
    container_name varchar(63) NOT NULL,
    file_name varchar(900) NOT NULL,
    length bigint,
    expected_sha256 varchar(64),
    metadata varchar(4096) DEFAULT '' NOT NULL,
    source_url varchar(2000),
    created_by varchar(200) NOT NULL,
    received_bytes bigint DEFAULT 0 NOT NULL,
    status app.upload_status DEFAULT 'receiving' NOT NULL,
    sha256 varchar(64),
    error text,
    writer varchar(64),
    writer_until timestamptz,
    source_etag varchar(500),
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamptz DEFAULT now() NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    completed_at timestamptz,
    CONSTRAINT uploads_pkey PRIMARY KEY (upload_id),
    CONSTRAINT uploads_received CHECK (received_bytes >= 0 AND received_bytes <= coalesce(length, received_bytes)),
    CONSTRAINT uploads_whole CHECK ((status = 'complete') = (completed_at IS NOT NULL)),
    CONSTRAINT uploads_platform_id_fkey FOREIGN KEY (platform_id) REFERENCES app.platforms (platform_id) ON DELETE RESTRICT
);

CREATE UNIQUE INDEX idx_uploads_name ON app.uploads USING btree (container_name, file_name) WHERE status <> 'failed';

CREATE INDEX idx_uploads_platform ON app.uploads USING btree (platform_id, created_at DESC, upload_id DESC);

CREATE INDEX idx_uploads_created ON app.uploads USING btree (created_at DESC, upload_id DESC);

CREATE INDEX idx_uploads_updated ON app.uploads USING btree (updated_at);

CREATE INDEX idx_uploads_due ON app.uploads USING btree (due_at) WHERE source_url IS NOT NULL AND status = 'receiving';

COMMENT ON TABLE app.uploads IS 'A file on its way into bronze, or one that arrived. Its bytes up to `received_bytes` are safe on disk.';

COMMENT ON COLUMN app.uploads.file_name IS 'The path in the container';

COMMENT ON COLUMN app.uploads.length IS 'Its bytes; None until the server of a URL tells';

COMMENT ON COLUMN app.uploads.expected_sha256 IS 'The checksum that the sender announced';

COMMENT ON COLUMN app.uploads.metadata IS 'The header Upload-Metadata of its creation';

COMMENT ON COLUMN app.uploads.source_url IS 'The URL that it is fetched from; None if a client sends it';

COMMENT ON COLUMN app.uploads.sha256 IS 'The checksum as computed';

COMMENT ON COLUMN app.uploads.writer IS 'The request that holds the lease to write';

COMMENT ON COLUMN app.uploads.source_etag IS 'The ETag of the URL''s answer; a changed one begins again';

COMMENT ON COLUMN app.uploads.attempts IS 'How often the URL was fetched';

CREATE TABLE app.upload_parts (
    upload_id varchar(64) NOT NULL,
    begin_byte bigint NOT NULL,
    size bigint NOT NULL,
    object_path varchar(900) NOT NULL,
    CONSTRAINT upload_parts_pkey PRIMARY KEY (upload_id, begin_byte),
    CONSTRAINT upload_parts_upload_id_fkey FOREIGN KEY (upload_id) REFERENCES app.uploads (upload_id) ON DELETE CASCADE
);

COMMENT ON TABLE app.upload_parts IS 'A piece of an upload in a store that cannot append. The piece is an object of its own.';

CREATE TABLE app.asset_audit (
    audit_id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    asset_id varchar(64) NOT NULL,
    revision integer NOT NULL,
    decision app.decision NOT NULL,
    actor varchar(200) NOT NULL,
    on_behalf_of varchar(200),
    client_address varchar(64),
    reason text,
    before jsonb DEFAULT '{}'::jsonb NOT NULL,
    after jsonb DEFAULT '{}'::jsonb NOT NULL,
    request_id varchar(64),
    job_id varchar(64),
    at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT asset_audit_pkey PRIMARY KEY (audit_id),
    CONSTRAINT asset_audit_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES app.geospatial_assets (asset_id) ON DELETE RESTRICT
);

CREATE INDEX idx_asset_audit_asset ON app.asset_audit USING btree (asset_id, audit_id DESC);

CREATE INDEX idx_asset_audit_reviews ON app.asset_audit USING btree (at DESC, audit_id DESC) WHERE decision IN ('approved', 'clearance_changed', 'rejected', 'revoked', 'unpublished', 'rolled_back');

CREATE OR REPLACE TRIGGER asset_audit_append_only
    BEFORE UPDATE OR DELETE ON app.asset_audit
    FOR EACH ROW
    EXECUTE FUNCTION app.refuse_change('its rows are only added to, never changed or deleted');

CREATE OR REPLACE TRIGGER asset_audit_no_truncate
    BEFORE TRUNCATE ON app.asset_audit
    FOR EACH STATEMENT
    EXECUTE FUNCTION app.refuse_change('its rows are only added to, never changed or deleted');

COMMENT ON TABLE app.asset_audit IS 'One decision of a person or an application about an asset.';

COMMENT ON COLUMN app.asset_audit.actor IS 'The subject of the credential';

COMMENT ON COLUMN app.asset_audit.on_behalf_of IS 'The person whom the actor named; not verified';

CREATE TABLE app.api_keys (
    key_id varchar(64) NOT NULL,
    secret_hash varchar(64) NOT NULL,
    name varchar(64) NOT NULL,
    roles jsonb NOT NULL,
    platform_id varchar(50),
    may_name app.may_name DEFAULT 'allowed' NOT NULL,
    created_by varchar(200) NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    CONSTRAINT api_keys_pkey PRIMARY KEY (key_id),
    CONSTRAINT api_keys_roles CHECK (jsonb_array_length(roles) > 0),
    CONSTRAINT api_keys_platform CHECK (NOT roles @> '["submitter"]'::jsonb OR platform_id IS NOT NULL)
);

CREATE UNIQUE INDEX idx_api_keys_name ON app.api_keys USING btree (name) WHERE revoked_at IS NULL;

COMMENT ON TABLE app.api_keys IS 'An API key without its secret. Its holder is the subject `key:<name>`.';

COMMENT ON COLUMN app.api_keys.secret_hash IS 'SHA-256 of the secret part';

COMMENT ON COLUMN app.api_keys.name IS 'Unique among the keys that are not revoked';

COMMENT ON COLUMN app.api_keys.platform_id IS 'The platform that a submitter submits for';

COMMENT ON COLUMN app.api_keys.may_name IS 'Whether its holder may name the person for whom it acts';

COMMENT ON COLUMN app.api_keys.last_used_at IS 'To the minute';

CREATE TABLE app.console_sessions (
    token_hash varchar(64) NOT NULL,
    previous_hash varchar(64),
    rotated_at timestamptz,
    key_id varchar(64),
    subject varchar(200) NOT NULL,
    roles jsonb NOT NULL,
    platform_id varchar(50),
    may_name app.may_name DEFAULT 'allowed' NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    begun_at timestamptz,
    last_used_at timestamptz,
    expires_at timestamptz NOT NULL,
    CONSTRAINT console_sessions_pkey PRIMARY KEY (token_hash),
    CONSTRAINT console_sessions_roles CHECK (jsonb_array_length(roles) > 0),
    CONSTRAINT console_sessions_key_id_fkey FOREIGN KEY (key_id) REFERENCES app.api_keys (key_id) ON DELETE CASCADE
);

CREATE INDEX idx_console_sessions_previous ON app.console_sessions USING btree (previous_hash) WHERE previous_hash IS NOT NULL;

CREATE INDEX idx_console_sessions_expiry ON app.console_sessions USING btree (expires_at);

CREATE INDEX idx_console_sessions_key ON app.console_sessions USING btree (key_id);

COMMENT ON TABLE app.console_sessions IS 'A session, or a sign-in link while `begun_at` is null. It ends with its key, if it has one.';

COMMENT ON COLUMN app.console_sessions.token_hash IS 'SHA-256 of the token';

COMMENT ON COLUMN app.console_sessions.previous_hash IS 'SHA-256 of the token before the last rotation';

COMMENT ON COLUMN app.console_sessions.key_id IS 'The key that signed in; null for a person of the OIDC issuer';

COMMENT ON COLUMN app.console_sessions.begun_at IS 'Null for a link that nobody has used';

COMMENT ON COLUMN app.console_sessions.last_used_at IS 'To the minute';

CREATE TABLE app.operator_audit (
    audit_id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    action varchar(64) NOT NULL,
    target varchar(200) NOT NULL,
    actor varchar(200) NOT NULL,
    reason varchar(500),
    details jsonb DEFAULT '{}'::jsonb NOT NULL,
    at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT operator_audit_pkey PRIMARY KEY (audit_id)
);

CREATE INDEX idx_operator_audit_action ON app.operator_audit USING btree (action, audit_id DESC);

CREATE OR REPLACE TRIGGER operator_audit_append_only
    BEFORE UPDATE OR DELETE ON app.operator_audit
    FOR EACH ROW
    EXECUTE FUNCTION app.refuse_change('its rows are only added to, never changed or deleted');

CREATE OR REPLACE TRIGGER operator_audit_no_truncate
    BEFORE TRUNCATE ON app.operator_audit
    FOR EACH STATEMENT
    EXECUTE FUNCTION app.refuse_change('its rows are only added to, never changed or deleted');

COMMENT ON TABLE app.operator_audit IS 'One change by an operator or an administrator. Decisions about assets are in the audit of assets.';

COMMENT ON COLUMN app.operator_audit.action IS 'An `OperatorAction`; text, so that a release can add some';

COMMENT ON COLUMN app.operator_audit.target IS 'The id of the thing that was changed';

COMMENT ON COLUMN app.operator_audit.actor IS 'The subject of the credential';

CREATE TABLE catalogue.collections (
    collection_id varchar(200) NOT NULL,
    platform_id varchar(50),
    items integer DEFAULT 0 NOT NULL,
    public_items integer DEFAULT 0 NOT NULL,
    public_extent jsonb,
    CONSTRAINT collections_pkey PRIMARY KEY (collection_id)
);

COMMENT ON TABLE catalogue.collections IS 'A STAC collection: its platform, its counts of items, and the extent of its public items.';

COMMENT ON COLUMN catalogue.collections.public_extent IS 'STAC''s extent, of the items that anybody may see';

CREATE TABLE catalogue.pending (
    asset_id varchar(64) NOT NULL,
    reason text NOT NULL,
    withheld boolean DEFAULT true NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    noted_at timestamptz DEFAULT now() NOT NULL,
    due_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pending_pkey PRIMARY KEY (asset_id)
);

CREATE INDEX idx_pending_due ON catalogue.pending USING btree (due_at);

CREATE INDEX idx_pending_withheld ON catalogue.pending USING btree (asset_id) WHERE withheld;

COMMENT ON TABLE catalogue.pending IS 'An asset whose catalogue entry has still to be written. An orchestrator writes it.';

COMMENT ON COLUMN catalogue.pending.withheld IS 'Nobody sees the present entry until the new one is written';

COMMENT ON COLUMN catalogue.pending.attempts IS 'Attempts that failed';

CREATE TABLE catalogue.schema_objects (
    object text NOT NULL,
    definition text NOT NULL,
    CONSTRAINT schema_objects_pkey PRIMARY KEY (object)
);

COMMENT ON TABLE catalogue.schema_objects IS 'A table, column, constraint, index, trigger or function of geomill or pgstac as the last migration left it.';

CREATE TABLE catalogue.schema_steps (
    number integer NOT NULL,
    title varchar(200) NOT NULL,
    applied_at timestamptz NOT NULL,
    CONSTRAINT schema_steps_pkey PRIMARY KEY (number)
);

COMMENT ON TABLE catalogue.schema_steps IS 'A migration step that has run in this database, or was not needed because the database was new.';

-- Jobs in the words of the earlier system, for its queries: one row for each job. A stage job is shown with its latest
-- attempt. A plain job has no stages; its type is its workflow. A job that no orchestrator has claimed yet waits on the
-- queue of jobs, or on the one for unknown workflows. (IN with a varchar reads differently after a dump, so it is = ANY.)
CREATE OR REPLACE VIEW app.jobs AS
SELECT j.job_id, j.workflow_id AS job_type,
       CASE j.status WHEN 'pending' THEN 'QUEUED' WHEN 'running' THEN 'PROCESSING' WHEN 'completed' THEN 'COMPLETED'
            ELSE 'FAILED' END AS status,
       NULL::integer AS stage, NULL::integer AS total_stages, j.input_params AS parameters, '{}'::jsonb AS stage_results,
       j.result_data, j.error_message AS error_details,
       jsonb_build_object('submitted_by', j.submitted_by, 'on_behalf_of', j.on_behalf_of,
                          'correlation_id', j.correlation_id, 'cancelled', j.status = 'cancelled') AS metadata,
       j.asset_id, j.job_id AS run_id, j.created_at, j.updated_at
FROM dagapp.dag_jobs AS j
WHERE NOT EXISTS (SELECT FROM dagapp.dag_stage_jobs AS s WHERE s.run_id = j.job_id)
UNION ALL
SELECT s.job_id, s.job_type,
       CASE j.status WHEN 'pending' THEN 'QUEUED' WHEN 'running' THEN 'PROCESSING' WHEN 'completed' THEN 'COMPLETED'
            ELSE 'FAILED' END,
       (SELECT least(count(*) FILTER (WHERE n.node_id LIKE '%\_aggregate' AND n.status = 'completed') + 1,
                     count(*) FILTER (WHERE n.node_id LIKE '%\_plan'))::integer
        FROM dagapp.dag_node_states AS n
        WHERE n.job_id = s.run_id AND n.item_index = -1 AND n.node_id LIKE 'stage%'),
       (SELECT count(*)::integer
        FROM dagapp.dag_node_states AS n
        WHERE n.job_id = s.run_id AND n.item_index = -1 AND n.node_id LIKE 'stage%\_plan'),
       s.parameters,
       coalesce((SELECT jsonb_object_agg('stage_' || substring(n.node_id FROM '[0-9]+'), n.output -> 'result')
                 FROM dagapp.dag_node_states AS n
                 WHERE n.job_id = s.run_id AND n.item_index = -1 AND n.node_id LIKE 'stage%\_aggregate'
                   AND n.status = 'completed'), '{}'),
       j.result_data, j.error_message,
       jsonb_build_object('submitted_by', j.submitted_by, 'on_behalf_of', j.on_behalf_of,
                          'correlation_id', j.correlation_id, 'cancelled', j.status = 'cancelled', 'attempt', s.attempt),
       j.asset_id, s.run_id, s.submitted_at, j.updated_at
FROM dagapp.dag_stage_jobs AS s
JOIN dagapp.dag_jobs AS j ON j.job_id = s.run_id
WHERE NOT EXISTS (
    SELECT
    FROM dagapp.dag_stage_jobs AS later
    WHERE later.job_id = s.job_id AND later.attempt > s.attempt
      AND (EXISTS (SELECT FROM dagapp.dag_jobs AS claimed WHERE claimed.job_id = later.run_id)
           OR EXISTS (SELECT FROM dagapp.dag_queue AS q
                      WHERE q.queue_name = ANY ('{dag-jobs,dag-jobs.unknown}'::text[]) AND q.message_id = later.run_id))
)
UNION ALL
SELECT coalesce(s.job_id, q.message_id)::varchar(64), coalesce(s.job_type, q.body ->> 'workflow_id')::varchar(64),
       'QUEUED', NULL::integer, NULL::integer,
       coalesce(s.parameters, q.body -> 'input_params', '{}'), '{}'::jsonb, NULL::jsonb, NULL::text,
       jsonb_build_object('submitted_by', q.body -> 'submitted_by', 'on_behalf_of', q.body -> 'on_behalf_of',
                          'correlation_id', q.body -> 'correlation_id', 'cancelled', false)
       || CASE WHEN s.attempt IS NULL THEN '{}' ELSE jsonb_build_object('attempt', s.attempt) END,
       (q.body ->> 'asset_id')::varchar(64), q.message_id::varchar(64), q.enqueued_at, q.enqueued_at
FROM dagapp.dag_queue AS q
LEFT JOIN dagapp.dag_stage_jobs AS s ON s.run_id = q.message_id
WHERE q.queue_name = ANY ('{dag-jobs,dag-jobs.unknown}'::text[])
  AND NOT EXISTS (SELECT FROM dagapp.dag_jobs AS j WHERE j.job_id = q.message_id);

-- Tasks of stage jobs in the words of the earlier system, for its queries: those of the latest attempt that were sent. The
-- parameters of a plan that lies in the object store are not here.
CREATE OR REPLACE VIEW app.tasks AS
SELECT left(s.job_id, 8) || '-s' || stage.number || '-' || coalesce(task.name, item.position::text) AS task_id,
       s.job_id AS parent_job_id, d.body -> 'nodes' -> f.node_id::text -> 'task' ->> 'handler' AS task_type,
       CASE coalesce(n.status, 'dispatched')
            WHEN 'completed' THEN 'COMPLETED' WHEN 'running' THEN 'PROCESSING' WHEN 'failed' THEN 'FAILED'
            WHEN 'cancelled' THEN 'CANCELLED' WHEN 'skipped' THEN 'CANCELLED' ELSE 'QUEUED' END AS status,
       stage.number AS stage, coalesce(task.name, item.position::text) AS task_index,
       (p.output -> 'tasks' -> item.position) - '__stage_task_id__' AS parameters,
       (SELECT r.output FROM dagapp.dag_task_results AS r WHERE r.task_id = n.task_id AND n.status = 'completed')
           AS result_data,
       (SELECT r.output -> 'next_stage_params'
        FROM dagapp.dag_task_results AS r WHERE r.task_id = n.task_id AND n.status = 'completed') AS next_stage_params,
       n.error_message AS error_details,
       CASE WHEN n.status = 'failed' THEN greatest(n.retry_count - 1, 0) ELSE coalesce(n.retry_count, 0) END AS retry_count,
       (SELECT i.heartbeat_at FROM dagapp.dag_instances AS i WHERE i.instance_id = n.worker_id AND n.status = 'running')
           AS heartbeat,
       s.run_id, n.task_id AS engine_task_id,
       coalesce(n.dispatched_at, f.started_at, f.updated_at) AS created_at,
       coalesce(n.updated_at, f.started_at, f.updated_at) AS updated_at
FROM dagapp.dag_stage_jobs AS s
JOIN dagapp.dag_jobs AS j ON j.job_id = s.run_id
JOIN dagapp.dag_definitions AS d ON d.definition_hash = j.definition_hash
JOIN dagapp.dag_node_states AS f ON f.job_id = s.run_id AND f.item_index = -1 AND f.node_id LIKE 'stage%\_tasks'
CROSS JOIN LATERAL (SELECT substring(f.node_id FROM '[0-9]+')::integer AS number) AS stage
CROSS JOIN LATERAL generate_series(0, f.items_sent - 1) AS item (position)
LEFT JOIN dagapp.dag_node_states AS n
    ON n.job_id = s.run_id AND n.node_id = f.node_id AND n.item_index = item.position
LEFT JOIN dagapp.dag_node_states AS p
    ON p.job_id = s.run_id AND p.node_id = 'stage' || stage.number || '_plan' AND p.item_index = -1
CROSS JOIN LATERAL (SELECT p.output -> 'indexes' ->> item.position AS name) AS task
WHERE NOT EXISTS (
    SELECT
    FROM dagapp.dag_stage_jobs AS later
    JOIN dagapp.dag_jobs AS claimed ON claimed.job_id = later.run_id
    WHERE later.job_id = s.job_id AND later.attempt > s.attempt
);
