-- Counters and histograms that all processes add to.

-- name: add
-- A bucket is sent as text, because JSON has no infinity.
INSERT INTO dagapp.dag_tallies AS t (name, bucket, value)
SELECT r.name, r.bucket::float8, r.value
FROM json_to_recordset(%(rows)s::json) AS r (name text, bucket text, value float8)
ORDER BY r.name, r.bucket::float8
ON CONFLICT (name, bucket) DO UPDATE SET value = t.value + excluded.value;

-- name: all
SELECT name, bucket, value FROM dagapp.dag_tallies ORDER BY name, bucket;
