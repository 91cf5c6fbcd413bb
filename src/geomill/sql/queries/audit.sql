-- Decisions about assets, and who made them.

-- columns: new_entry of app.asset_audit without audit_id, at

-- name: add
INSERT INTO app.asset_audit ({columns of new_entry})
VALUES ({values of new_entry});

-- name: of_asset
SELECT {columns of app.asset_audit} FROM app.asset_audit WHERE asset_id = %(asset_id)s ORDER BY audit_id DESC LIMIT %(limit)s;

-- name: reviews
-- Decisions of reviewers, the newest first, after the last one of the page before.
SELECT audit_id, audit.asset_id, platform_id, stac_item_id, outputs -> 'dataset_metadata' ->> 'title' AS title,
       audit.revision, decision, actor, on_behalf_of, reason, after ->> 'clearance_state' AS clearance_state, at
FROM app.asset_audit AS audit
JOIN app.geospatial_assets AS asset ON asset.asset_id = audit.asset_id
WHERE decision IN ('approved', 'clearance_changed', 'rejected', 'revoked', 'unpublished', 'rolled_back')
  AND (%(since)s::timestamptz IS NULL OR at >= %(since)s::timestamptz)
  AND (%(before)s::timestamptz IS NULL OR (at, audit_id) < (%(before)s::timestamptz, %(before_id)s::bigint))
ORDER BY at DESC, audit_id DESC
LIMIT %(limit)s;
