-- Decisions about assets, and who made them.

-- columns: new_entry of app.asset_audit without audit_id, at

-- name: add
INSERT INTO app.asset_audit ({columns of new_entry})
VALUES ({values of new_entry});

-- name: of_asset
SELECT {columns of app.asset_audit} FROM app.asset_audit WHERE asset_id = %(asset_id)s ORDER BY audit_id DESC LIMIT %(limit)s;
