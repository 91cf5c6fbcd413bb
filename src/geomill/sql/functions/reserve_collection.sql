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
