-- The roles of the database. Words in braces are identifiers, which the caller quotes.

-- name: pgstac_roles
-- pgstac's own migrations create these roles. They fail under a role that may not create roles, even if the roles exist.
-- This statement replaces that part and does only what is missing.
DO $roles$
DECLARE
    _role text;
    -- Since PostgreSQL 16 the creator of a role is a member of it, but may act as it only after granting itself that.
    _acting text := CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END;
BEGIN
    FOREACH _role IN ARRAY ARRAY['pgstac_admin', 'pgstac_read', 'pgstac_ingest'] LOOP
        IF to_regrole(_role) IS NULL THEN
            EXECUTE format('CREATE ROLE %I', _role);
            EXECUTE format('ALTER ROLE %I SET search_path TO pgstac, public', _role);
        END IF;
        IF NOT pg_has_role(current_user, _role, _acting) THEN
            EXECUTE format('GRANT %I TO %I', _role, current_user);
        END IF;
    END LOOP;
    IF NOT pg_has_role('pgstac_ingest', 'pgstac_read', 'MEMBER') THEN
        GRANT pgstac_read TO pgstac_ingest;
    END IF;
END
$roles$;

-- name: privileges
-- The rights of the current role at the level of the server.
SELECT r.rolname AS role, r.rolsuper AS superuser, r.rolcreaterole AS create_roles,
       r.rolcreatedb AS create_databases,
       pg_has_role(d.datdba, 'USAGE') AS owns_database
FROM pg_roles AS r CROSS JOIN pg_database AS d
WHERE r.rolname = current_user AND d.datname = current_database();

-- name: may_compare
-- A comparison with the models creates scratch schemas.
SELECT has_database_privilege(current_database(), 'CREATE') AS may;

-- name: others_connected
-- The kind of a session is hidden from other roles; these columns are not.
SELECT count(*) FROM pg_stat_activity
WHERE datname IS NOT NULL AND usename IS NOT NULL AND pid <> pg_backend_pid();

-- name: stamp
SELECT shobj_description(to_regrole(%(owner)s), 'pg_authid');

-- name: put_stamp
COMMENT ON ROLE {owner} IS {stamp};

-- name: set_up_lock
SELECT pg_advisory_lock(%(key)s);

-- name: missing_roles
-- The roles that do not exist, and those that the current role may not act as. See `pgstac_roles` for PostgreSQL 16.
SELECT n.role, to_regrole(n.role) IS NULL AS absent,
       CASE WHEN to_regrole(n.role) IS NULL THEN true ELSE NOT pg_has_role(current_user, to_regrole(n.role), a.acting) END
           AS foreign
FROM unnest(%(roles)s::text[]) WITH ORDINALITY AS n (role, place)
CROSS JOIN (SELECT CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END) AS a (acting)
ORDER BY n.place;

-- name: present_roles
-- The named roles that both the database's owner and the current role are members of. Another installation on the same
-- server may have roles of these names; a superuser is a member of every role, so its membership proves nothing.
SELECT r.rolname
FROM pg_roles AS r
JOIN pg_database AS d ON d.datname = current_database()
JOIN pg_roles AS o ON o.oid = d.datdba
WHERE r.rolname = ANY(%(roles)s) AND NOT o.rolsuper
  AND pg_has_role(o.oid, r.oid, 'MEMBER') AND pg_has_role(current_user, r.oid, 'MEMBER')
ORDER BY array_position(%(roles)s, r.rolname::text);

-- name: table_privileges
SELECT p.name FROM unnest(%(privileges)s::text[]) AS p (name)
WHERE has_table_privilege(%(role)s, %(table)s, p.name);

-- name: feature_tables_of_others
-- Tables that the current role may hand over to their maker: its own, and those of the roles that it is a member of.
SELECT c.oid::regclass::text
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = ANY(%(schemas)s) AND c.relkind IN ('r', 'p')
  AND pg_has_role(current_user, c.relowner, 'USAGE') AND c.relowner <> %(owner)s::regrole
ORDER BY 1;

-- name: feature_tables_unread
-- Tables of the current role, and of roles that it is a member of, that the given role cannot read.
SELECT c.oid::regclass::text
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = ANY(%(schemas)s) AND c.relkind IN ('r', 'p')
  AND pg_has_role(current_user, c.relowner, 'USAGE') AND NOT has_table_privilege(%(role)s, c.oid, 'SELECT')
ORDER BY 1;

-- name: create_role
CREATE ROLE {role}

-- name: set_search_path
ALTER ROLE {role} SET search_path TO pgstac, public

-- name: grant_membership
GRANT {role} TO {member}

-- name: grant_if_allowed
DO $grant$ BEGIN GRANT {role} TO {member}; EXCEPTION WHEN insufficient_privilege THEN RAISE NOTICE '%', SQLERRM; END $grant$

-- name: create_extension
CREATE EXTENSION {name}

-- name: ensure_role
DO $role$ BEGIN CREATE ROLE {role} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $role$

-- name: ensure_login
DO $role$ BEGIN CREATE ROLE {role} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $role$

-- name: limit_statements
ALTER ROLE {role} SET statement_timeout = '60s'

-- name: only_read
ALTER ROLE {role} SET default_transaction_read_only = on

-- name: own_database
ALTER DATABASE {database} OWNER TO {owner}

-- name: close_database
REVOKE CONNECT ON DATABASE {database} FROM PUBLIC

-- name: open_database
GRANT CONNECT ON DATABASE {database} TO {role}

-- name: ensure_extension
CREATE EXTENSION IF NOT EXISTS {name}

-- name: set_password
ALTER ROLE {role} PASSWORD {verifier}

-- name: database_there
SELECT EXISTS (SELECT FROM pg_database WHERE datname = %(name)s);

-- name: adopt
-- Objects that an earlier release made as this superuser become the owner's; those in pgstac become pgstac_admin's.
DO $adopt$
DECLARE
    _thing record;
BEGIN
    FOR _thing IN
        WITH homes AS (
            SELECT n.oid, n.nspname, n.nspowner, CASE n.nspname WHEN 'pgstac' THEN 'pgstac_admin' ELSE 'geomill_owner' END AS becomes
            FROM pg_namespace AS n
            WHERE n.nspname IN ('app', 'dagapp', 'catalogue', 'external', 'geo', 'geo_staging', 'pgstac')
        ), things AS (
            SELECT 0 AS place, format('SCHEMA %I', h.nspname) AS name, h.nspowner AS owner, h.becomes FROM homes AS h
            UNION ALL
            SELECT 1, format('%s %s', CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
                                                     WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass),
                   c.relowner, h.becomes
            FROM homes AS h JOIN pg_class AS c ON c.relnamespace = h.oid
            WHERE c.relkind IN ('r', 'p', 'v', 'm')
               OR c.relkind = 'S' AND NOT EXISTS (
                   SELECT FROM pg_depend AS d
                   WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i'))
            UNION ALL
            SELECT 2, format('TYPE %s', t.oid::regtype), t.typowner, h.becomes
            FROM homes AS h JOIN pg_type AS t ON t.typnamespace = h.oid
            WHERE t.typtype IN ('e', 'd')
            UNION ALL
            SELECT 3, format('ROUTINE %s', p.oid::regprocedure), p.proowner, coalesce(h.becomes, 'geomill_owner')
            FROM pg_proc AS p LEFT JOIN homes AS h ON h.oid = p.pronamespace
            WHERE h.oid IS NOT NULL OR p.proname = 'pgstac_admin_owns'
        )
        SELECT t.name, t.becomes FROM things AS t WHERE t.owner = current_user::regrole ORDER BY t.place
    LOOP
        EXECUTE format('ALTER %s OWNER TO %I', _thing.name, _thing.becomes);
    END LOOP;
    IF to_regnamespace('dagapp') IS NOT NULL THEN
        COMMENT ON SCHEMA dagapp IS NULL;  -- no fingerprint: the next look migrates, and so grants what the roles need
    END IF;
END
$adopt$
