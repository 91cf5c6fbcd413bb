-- Takes the collection for this transaction, makes it and its partition if they are not there, and says the partition's
-- name. Writers of one collection come one after the other: pgstac's own locks are taken in different orders.
--
-- pgstac ties a partition to the dates that are in it, and each item outside of them alters the table, under a lock that
-- stops readers. Our partitions carry no such tie: a table is altered only when it is made.
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
