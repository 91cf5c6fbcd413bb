-- Changes by operators and administrators to the platform itself.

-- columns: new_entry of app.operator_audit without audit_id, at

-- name: add
INSERT INTO app.operator_audit ({columns of new_entry})
VALUES ({values of new_entry});

-- name: page
-- The newest first, after the last one of the page before.
SELECT {columns of app.operator_audit}
FROM app.operator_audit
WHERE (%(action)s::text IS NULL OR action = %(action)s)
  AND (%(before)s::bigint IS NULL OR audit_id < %(before)s)
ORDER BY audit_id DESC
LIMIT %(limit)s;
