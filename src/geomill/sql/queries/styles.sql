-- Named styles of assets.

-- name: of_asset
SELECT {columns of app.asset_styles} FROM app.asset_styles WHERE asset_id = %(asset_id)s ORDER BY name;

-- name: book
SELECT jsonb_build_object('default', max(t.name) FILTER (WHERE t.is_default), 'styles', jsonb_object_agg(t.name, t.style)) AS book
FROM app.asset_styles AS t WHERE t.asset_id = %(asset_id)s;

-- name: forget_default
UPDATE app.asset_styles SET is_default = false WHERE asset_id = %(asset_id)s AND is_default AND name <> %(name)s;

-- name: put
INSERT INTO app.asset_styles AS s (asset_id, name, is_default, style, updated_by)
VALUES (%(asset_id)s, %(name)s, %(is_default)s, %(style)s, %(updated_by)s)
ON CONFLICT (asset_id, name) DO UPDATE
SET is_default = EXCLUDED.is_default, style = EXCLUDED.style, updated_by = EXCLUDED.updated_by, updated_at = now()
RETURNING {columns of app.asset_styles as s};

-- name: remove
DELETE FROM app.asset_styles AS s WHERE s.asset_id = %(asset_id)s AND s.name = %(name)s
RETURNING {columns of app.asset_styles as s};
