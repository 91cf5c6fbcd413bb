-- The objects of the schemas, and those that the last migration left there.
--
-- The definitions depend neither on the search path nor on how a release of PostgreSQL words them, so equal objects have
-- equal definitions on every server. Partitions, which pgstac makes as it needs them, do not count; nor do the indexes
-- of its queryables.

-- name: live
WITH tables AS (
    SELECT c.oid, c.relkind::text AS kind, format('%%I.%%I', n.nspname, c.relname) AS name
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = ANY(%(schemas)s::text[]) AND c.relkind IN ('r', 'p', 'v', 'm') AND NOT c.relispartition
)
SELECT CASE WHEN t.kind IN ('r', 'p') THEN 'table ' ELSE 'view ' END || t.name AS object, t.kind AS definition
FROM tables AS t
UNION ALL
SELECT format('column %%s of %%s', a.attname, t.name),
       concat_ws(' ', y.typname, a.atttypmod, CASE WHEN a.attnotnull THEN 'not null' END,
                 CASE WHEN a.atthasdef THEN 'default' END, nullif(a.attidentity, ''))
FROM tables AS t
JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type AS y ON y.oid = a.atttypid
UNION ALL
SELECT format('constraint %%s of %%s', k.conname, t.name),
       concat_ws(' ', k.contype, CASE WHEN NOT k.convalidated THEN 'not validated' END,
                 (SELECT string_agg(a.attname, ',' ORDER BY u.place)
                  FROM unnest(k.conkey) WITH ORDINALITY AS u (number, place)
                  JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = u.number))
FROM tables AS t
JOIN pg_constraint AS k ON k.conrelid = t.oid AND k.contype IN ('p', 'u', 'c', 'f', 'x')
UNION ALL
SELECT format('index %%s on %%s', c.relname, t.name),
       concat_ws(' ', m.amname, CASE WHEN i.indisunique THEN 'unique' END,
                 (SELECT string_agg(coalesce(a.attname, '(expression)'), ',' ORDER BY u.place)
                  FROM unnest(i.indkey::smallint[]) WITH ORDINALITY AS u (number, place)
                  LEFT JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = u.number AND u.number > 0),
                 CASE WHEN i.indpred IS NOT NULL THEN 'partial' END,
                 CASE WHEN NOT (i.indisvalid AND i.indisready) THEN 'invalid' END)
FROM tables AS t
JOIN pg_index AS i ON i.indrelid = t.oid
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_am AS m ON m.oid = c.relam
WHERE t.name <> 'pgstac.queryable_index_template'
UNION ALL
SELECT format('trigger %%s on %%s', g.tgname, t.name),
       concat_ws(' ', p.proname, g.tgtype, g.tgenabled, CASE WHEN g.tgqual IS NOT NULL THEN 'when' END)
FROM tables AS t
JOIN pg_trigger AS g ON g.tgrelid = t.oid AND NOT g.tgisinternal
JOIN pg_proc AS p ON p.oid = g.tgfoid
UNION ALL
SELECT format('function %%I.%%I(%%s)', n.nspname, p.proname,
              (SELECT string_agg(y.typname, ', ' ORDER BY u.place)
               FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS u (number, place)
               JOIN pg_type AS y ON y.oid = u.number)),
       concat_ws(' ', md5(p.prosrc), p.provolatile, CASE WHEN p.prosecdef THEN 'definer' END,
                 array_to_string(p.proconfig, ' '))
FROM pg_proc AS p
JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = ANY(%(schemas)s::text[]);

-- name: there
SELECT to_regclass('catalogue.schema_objects') IS NOT NULL AS there;

-- name: recorded
SELECT object, definition FROM catalogue.schema_objects;

-- name: forget
DELETE FROM catalogue.schema_objects;

-- name: record
INSERT INTO catalogue.schema_objects (object, definition)
SELECT o.object, o.definition FROM unnest(%(objects)s::text[], %(definitions)s::text[]) AS o (object, definition);
