-- The objects of a database, as PostgreSQL itself words them. Every name but pg_catalog's is qualified in the results,
-- because `qualify_names` empties the search path for the length of the transaction.

-- name: qualify_names
SET LOCAL search_path = pg_catalog

-- name: schemas
SELECT nspname AS name
FROM pg_namespace
WHERE nspname = ANY(%(schemas)s) ORDER BY 1

-- name: enums
SELECT n.nspname AS schema, t.typname AS name, array_agg(e.enumlabel::text ORDER BY e.enumsortorder) AS labels
FROM pg_type t
JOIN pg_namespace n ON n.oid = t.typnamespace
JOIN pg_enum e ON e.enumtypid = t.oid
WHERE n.nspname = ANY(%(schemas)s)
GROUP BY n.nspname, t.typname

-- name: functions
SELECT n.nspname AS schema, p.proname AS name, pg_get_functiondef(p.oid) AS definition
FROM pg_proc p
JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = ANY(%(schemas)s) AND p.prokind = 'f' AND p.proname = ANY(%(functions)s)

-- name: views
SELECT n.nspname AS schema, c.relname AS name, pg_get_viewdef(c.oid) AS definition
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'v' AND n.nspname || '.' || c.relname = ANY(%(views)s)

-- name: tables
SELECT c.oid, n.nspname AS schema, c.relname AS name, c.reloptions AS storage,
       obj_description(c.oid, 'pg_class') AS comment
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ANY(%(schemas)s) AND c.relkind IN ('r', 'p')

-- name: columns
SELECT a.attrelid AS table, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
       NOT a.attnotnull AS nullable, pg_get_expr(d.adbin, d.adrelid) AS default,
       a.attidentity::text AS identity, col_description(a.attrelid, a.attnum) AS comment
FROM pg_attribute a
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY(%(tables)s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum

-- name: constraints
SELECT conrelid AS table, conname AS name, contype::text AS kind, pg_get_constraintdef(oid) AS definition
FROM pg_constraint
WHERE conrelid = ANY(%(tables)s::oid[]) AND contype IN ('p', 'u', 'c', 'f')

-- name: indexes
-- Without the indexes of constraints. An index that a failed CONCURRENTLY left behind differs from a valid one.
SELECT i.indrelid AS table, c.relname AS name, i.indisunique AS unique,
       pg_get_indexdef(i.indexrelid) || CASE WHEN i.indisvalid THEN '' ELSE ' INVALID' END AS definition
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = ANY(%(tables)s::oid[])
  AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.conrelid = i.indrelid)

-- name: triggers
-- Only triggers that call geomill's functions. A disabled trigger differs from an enabled one.
SELECT t.tgrelid AS table, t.tgname AS name,
       pg_get_triggerdef(t.oid) || CASE WHEN t.tgenabled = 'O' THEN '' ELSE ' DISABLED' END AS definition
FROM pg_trigger t
JOIN pg_proc p ON p.oid = t.tgfoid
WHERE t.tgrelid = ANY(%(tables)s::oid[]) AND NOT t.tgisinternal AND p.proname = ANY(%(functions)s)
