-- Roles and the two schemas, before River's own steps and our numbered ones.
-- Run by a role with CREATE on the database and CREATEROLE; safe to run again, does nothing the second time.
DO $do$
DECLARE
    v_role text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY['highwater_owner', 'highwater_operator', 'highwater_reader'] LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = v_role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', v_role);
        END IF;
    END LOOP;
    -- The migrating role acts as the owner from here on, so it must be a member; a superuser is one already.
    IF NOT pg_has_role(current_user, 'highwater_owner', 'MEMBER') THEN
        EXECUTE format('GRANT highwater_owner TO %I', current_user);
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace AS n WHERE n.nspname = 'connector') THEN
        CREATE SCHEMA connector AUTHORIZATION highwater_owner;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace AS n WHERE n.nspname = 'connector_queue') THEN
        CREATE SCHEMA connector_queue AUTHORIZATION highwater_owner;
    END IF;
END
$do$;
