-- The item of a revision that was superseded, as a deprecated one; nothing if there is none, or its data is deleted. Its
-- files are its own; features, whose address begins with a slash, are served of the latest revision only.
CREATE OR REPLACE FUNCTION app.catalogue_version(_collection text, _id text, _revision integer) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    _asset record;
    _old record;
    _item jsonb;
BEGIN
    SELECT a.* INTO _asset
    FROM app.geospatial_assets AS a
    WHERE a.stac_item_id = _id AND a.stac_collection_id = _collection AND a.deleted_at IS NULL;
    SELECT r.revision, r.outputs -> 'stac_item' AS item,
           (SELECT max(b.revision) FROM app.asset_revisions AS b
            WHERE b.asset_id = r.asset_id AND b.revision < r.revision AND b.revision > _asset.data_deleted_through
              AND b.outputs ? 'stac_item') AS before
    INTO _old
    FROM app.asset_revisions AS r
    WHERE r.asset_id = _asset.asset_id AND r.revision = _revision AND r.revision > _asset.data_deleted_through
      AND r.revision <> _asset.served_revision AND jsonb_typeof(r.outputs -> 'stac_item') = 'object';
    IF _old.item IS NULL THEN
        RETURN NULL;
    END IF;
    _item := app.revision_item(_old.item, _asset.asset_id, _old.revision, _old.before, _collection, _id);
    RETURN _item || jsonb_build_object(
        'links', _item -> 'links' || jsonb_build_array(jsonb_build_object(
            'rel', 'latest-version', 'type', 'application/geo+json',
            'href', format('collections/%s/items/%s', _collection, _id)
        )),
        'assets', coalesce((
            SELECT jsonb_object_agg(one.key, one.value)
            FROM jsonb_each(_item -> 'assets') AS one WHERE NOT starts_with(one.value ->> 'href', '/')
        ), '{}'),
        'properties', (_old.item -> 'properties') || jsonb_build_object(
            'geomill:asset_id', _asset.asset_id, 'geomill:revision', _old.revision,
            'geomill:platform', _asset.platform_id, 'version', _old.revision::text, 'deprecated', true
        )
    );
END
$$;
