-- The registry of partner applications.

-- name: all
SELECT {columns of app.platforms} FROM app.platforms WHERE %(inactive)s::boolean OR is_active ORDER BY platform_id;

-- name: get
SELECT {columns of app.platforms} FROM app.platforms WHERE platform_id = %(platform_id)s;

-- name: lock
SELECT {columns of app.platforms} FROM app.platforms WHERE platform_id = %(platform_id)s FOR UPDATE;

-- columns: new_platform of app.platforms without created_at, updated_at

-- name: create
INSERT INTO app.platforms ({columns of new_platform})
VALUES ({values of new_platform})
ON CONFLICT DO NOTHING
RETURNING {columns of app.platforms};

-- name: update
UPDATE app.platforms
SET display_name = %(display_name)s, description = %(description)s, optional_refs = %(optional_refs)s,
    workflows = %(workflows)s, containers = %(containers)s, is_active = %(is_active)s, updated_at = now()
WHERE platform_id = %(platform_id)s
RETURNING {columns of app.platforms};
