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
