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
