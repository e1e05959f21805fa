-- Roles, the two schemas and the records of what was applied, before River's own steps and our numbered ones.
-- Run by a role with CREATE on the database and CREATEROLE; safe to run again, does nothing the second time.
DO $do$
DECLARE
    v_role  text;
    v_owner text;
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
    FOREACH v_role IN ARRAY ARRAY['connector', 'connector_queue'] LOOP
        SELECT n.nspowner::regrole::text INTO v_owner FROM pg_catalog.pg_namespace AS n WHERE n.nspname = v_role;
        IF NOT FOUND THEN
            EXECUTE format('CREATE SCHEMA %I AUTHORIZATION highwater_owner', v_role);
        ELSIF v_owner <> 'highwater_owner' THEN
            RAISE EXCEPTION 'schema "%" belongs to role %, not to highwater_owner', v_role, v_owner
                USING ERRCODE = '42501', HINT = 'Nothing is built into a schema that somebody else controls: rename or drop it.';
        END IF;
    END LOOP;
    IF to_regclass('connector._migration') IS NULL THEN
        CREATE TABLE connector._migration (
            number     integer PRIMARY KEY,
            name       text NOT NULL,
            sha256     text NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT now()
        );
        ALTER TABLE connector._migration OWNER TO highwater_owner;
        COMMENT ON TABLE connector._migration IS 'The numbered migrations that were applied, with their digests.';
        CREATE TABLE connector._repeatable (
            one        boolean PRIMARY KEY DEFAULT true CHECK (one),
            sha256     text NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT now()
        );
        ALTER TABLE connector._repeatable OWNER TO highwater_owner;
        COMMENT ON TABLE connector._repeatable IS 'Digest of the functions, views and grants as they were last applied.';
    END IF;
END
$do$;
