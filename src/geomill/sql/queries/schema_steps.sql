-- The numbered steps of the migration.

-- name: there
SELECT to_regclass('catalogue.schema_steps') IS NOT NULL;

-- name: applied
SELECT number FROM catalogue.schema_steps;

-- name: record
INSERT INTO catalogue.schema_steps (number, title, applied_at) VALUES (%(number)s, %(title)s, now())
ON CONFLICT (number) DO NOTHING;
