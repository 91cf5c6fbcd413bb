-- What was decided about assets, by whom.

-- name: add
INSERT INTO app.asset_audit (
    asset_id, revision, decision, actor, client_address, reason, before, after, request_id, job_id
)
VALUES (
    %(asset_id)s, %(revision)s, %(decision)s, %(actor)s, %(client_address)s, %(reason)s, %(before)s, %(after)s,
    %(request_id)s, %(job_id)s
);

-- name: of_asset
SELECT {columns of app.asset_audit} FROM app.asset_audit WHERE asset_id = %(asset_id)s ORDER BY audit_id DESC LIMIT %(limit)s;
