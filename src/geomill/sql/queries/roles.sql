-- The roles of the database. What stands in braces are identifiers, quoted by whoever puts them in.

-- name: pgstac_roles
-- pgstac's own migrations create these roles, and fail for whoever may not, even if the roles are there. This is done
-- instead of that: it does only what is missing.
DO $roles$
DECLARE
    _role text;
BEGIN
    FOREACH _role IN ARRAY ARRAY['pgstac_admin', 'pgstac_read', 'pgstac_ingest'] LOOP
        IF to_regrole(_role) IS NULL THEN
            EXECUTE format('CREATE ROLE %I', _role);
            EXECUTE format('ALTER ROLE %I SET search_path TO pgstac, public', _role);
        END IF;
        IF NOT pg_has_role(current_user, _role, 'MEMBER') THEN
            EXECUTE format('GRANT %I TO %I', _role, current_user);
        END IF;
    END LOOP;
    IF NOT pg_has_role('pgstac_ingest', 'pgstac_read', 'MEMBER') THEN
        GRANT pgstac_read TO pgstac_ingest;
    END IF;
END
$roles$;

-- name: privileges
-- What the current role may do at the level of the server.
SELECT r.rolname AS role, r.rolsuper AS superuser, r.rolcreaterole AS create_roles,
       pg_has_role(d.datdba, 'USAGE') AS owns_database
FROM pg_roles AS r CROSS JOIN pg_database AS d
WHERE r.rolname = current_user AND d.datname = current_database();

-- name: missing_roles
-- Those that are not there, and those that the current role is no member of.
SELECT n.role, to_regrole(n.role) IS NULL AS absent,
       CASE WHEN to_regrole(n.role) IS NULL THEN true ELSE NOT pg_has_role(current_user, to_regrole(n.role), 'MEMBER') END AS foreign
FROM unnest(%(roles)s::text[]) WITH ORDINALITY AS n (role, place)
ORDER BY n.place;

-- name: create_role
CREATE ROLE {role}

-- name: set_search_path
ALTER ROLE {role} SET search_path TO pgstac, public

-- name: grant_membership
GRANT {role} TO {member}

-- name: create_extension
CREATE EXTENSION {name}
