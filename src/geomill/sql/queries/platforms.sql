-- The registry of partner applications.

-- name: all
SELECT {columns of app.platforms} FROM app.platforms WHERE %(inactive)s::boolean OR is_active ORDER BY platform_id;

-- name: get
SELECT {columns of app.platforms} FROM app.platforms WHERE platform_id = %(platform_id)s;

-- name: create
INSERT INTO app.platforms (platform_id, display_name, description, required_refs, optional_refs, workflows, containers, is_active)
VALUES (
    %(platform_id)s, %(display_name)s, %(description)s, %(required_refs)s, %(optional_refs)s, %(workflows)s,
    %(containers)s, %(is_active)s
)
ON CONFLICT DO NOTHING
RETURNING {columns of app.platforms};

-- name: update
UPDATE app.platforms
SET display_name = %(display_name)s, description = %(description)s, optional_refs = %(optional_refs)s,
    workflows = %(workflows)s, containers = %(containers)s, is_active = %(is_active)s, updated_at = now()
WHERE platform_id = %(platform_id)s
RETURNING {columns of app.platforms};
