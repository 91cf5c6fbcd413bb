-- Puts many items at once: those of the table `incoming (content jsonb, platform_id text)`, of any collections, which are
-- made if they are not there. An item that is there twice counts once, as the last one. How many there are.
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
    -- In one order, so that two of these do not wait for each other.
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
                SELECT DISTINCT ON (n.id) n.id, catalogue.sound_place(ST_GeomFromGeoJSON(n.content -> 'geometry')), $1,
                       coalesce(n.begins, n.at)::timestamptz, coalesce(n.ends, n.at)::timestamptz,
                       n.content - '{id,geometry,collection,type}'::text[],
                       jsonb_build_object('public', coalesce((n.properties -> 'geomill:public')::boolean, false))
                FROM (
                    SELECT ctid AS place, content, content ->> 'id' AS id, content -> 'properties' AS properties,
                           content #>> '{properties,datetime}' AS at,
                           content #>> '{properties,start_datetime}' AS begins,
                           content #>> '{properties,end_datetime}' AS ends
                    FROM incoming WHERE content ->> 'collection' = $1
                ) AS n
                ORDER BY n.id, n.place DESC
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
