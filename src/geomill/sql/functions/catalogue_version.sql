-- The item of a revision beside the one that the catalogue shows: one that was superseded, as a deprecated one, or one
-- that is to be reviewed while an earlier one is public. Nothing if there is none, or if it was withdrawn or deleted. Its
-- files are its own; features, whose address begins with a slash, are served of the latest revision only.
CREATE OR REPLACE FUNCTION app.catalogue_version(_collection text, _id text, _revision integer) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    _asset record;
    _gone integer;
    _shown integer;
    _stored jsonb;
    _before integer;
    _item jsonb;
BEGIN
    SELECT a.asset_id, a.platform_id, a.served_revision, a.outputs, a.data_deleted_through, a.withdrawn_through
    INTO _asset
    FROM app.geospatial_assets AS a
    WHERE a.stac_item_id = _id AND a.stac_collection_id = _collection AND a.deleted_at IS NULL;
    _gone := greatest(_asset.data_deleted_through, _asset.withdrawn_through);
    _shown := (SELECT s.revision FROM app.shown_revision(_asset.asset_id) AS s);
    IF _revision = _asset.served_revision THEN
        _stored := _asset.outputs -> 'stac_item';
    ELSE
        SELECT r.outputs -> 'stac_item' INTO _stored
        FROM app.asset_revisions AS r
        WHERE r.asset_id = _asset.asset_id AND r.revision = _revision
      AND NOT EXISTS (SELECT FROM app.asset_leftovers AS l
                      WHERE l.asset_id = r.asset_id AND l.revision = r.revision
                        AND l.job_id IS NOT DISTINCT FROM r.job_id);
    END IF;
    IF _revision <= _gone OR _revision = _shown OR jsonb_typeof(_stored) IS DISTINCT FROM 'object' THEN
        RETURN NULL;
    END IF;
    SELECT max(b.revision) INTO _before
    FROM app.asset_revisions AS b
    WHERE b.asset_id = _asset.asset_id AND b.revision < _revision AND b.revision > _gone AND b.outputs ? 'stac_item'
      AND NOT EXISTS (SELECT FROM app.asset_leftovers AS l
                      WHERE l.asset_id = b.asset_id AND l.revision = b.revision
                        AND l.job_id IS NOT DISTINCT FROM b.job_id);
    _item := app.revision_item(_stored, _asset.asset_id, _revision, _before, _collection, _id);
    RETURN _item || jsonb_build_object(
        'links', _item -> 'links' || jsonb_build_array(jsonb_build_object(
            'rel', 'latest-version', 'type', 'application/geo+json',
            'href', format('collections/%s/items/%s', _collection, _id)
        )),
        'assets', coalesce((
            SELECT jsonb_object_agg(one.key, one.value)
            FROM jsonb_each(_item -> 'assets') AS one WHERE NOT starts_with(one.value ->> 'href', '/')
        ), '{}'),
        'properties', (_stored -> 'properties') || jsonb_build_object(
            'geomill:asset_id', _asset.asset_id, 'geomill:revision', _revision,
            'geomill:platform', _asset.platform_id, 'version', _revision::text, 'deprecated', _revision < _shown
        )
    );
END
$$;
