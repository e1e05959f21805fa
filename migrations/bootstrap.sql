-- Roles, the two schemas and the records of what was applied, before River's own steps and our numbered ones.
-- Run by a role with CREATE on the database and CREATEROLE; safe to run again, does nothing the second time.
DO $do$
DECLARE
    v_meanings CONSTANT jsonb := '{
        "highwater_owner": "highwater: owns the schemas connector and connector_queue; the sidecar''s login role is a member, nobody else.",
        "highwater_operator": "highwater: declares and runs connectors, settles dead letters, stores secrets.",
        "highwater_reader": "highwater: reads the views of the schema connector."}';
    v_name  text;
    v_owner text;
BEGIN
    FOREACH v_name IN ARRAY ARRAY['highwater_owner', 'highwater_operator', 'highwater_reader'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = v_name);
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', v_name);
            EXECUTE format('COMMENT ON ROLE %I IS %L', v_name, v_meanings ->> v_name);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL; -- roles belong to the server: a runner in another database, whom our lock does not stop, has made it
        END;
    END LOOP;
    -- The migrating role acts as the owner from here on. A superuser may already; in PostgreSQL 16 and later the maker of a
    -- role is a member of it and still may not.
    IF NOT pg_has_role(current_user, 'highwater_owner',
                       CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END) THEN
        EXECUTE format('GRANT highwater_owner TO %I', current_user);
    END IF;
    FOREACH v_name IN ARRAY ARRAY['connector', 'connector_queue'] LOOP
        SELECT pg_get_userbyid(n.nspowner) INTO v_owner FROM pg_catalog.pg_namespace AS n WHERE n.nspname = v_name;
        IF NOT FOUND THEN
            EXECUTE format('CREATE SCHEMA %I AUTHORIZATION highwater_owner', v_name);
        ELSIF v_owner <> 'highwater_owner' THEN
            RAISE EXCEPTION 'schema "%" belongs to role %, not to highwater_owner', v_name, v_owner
                USING ERRCODE = '42501', HINT = 'Nothing is built into a schema that somebody else controls: rename or drop it.';
        END IF;
    END LOOP;
    IF to_regclass('connector._migration') IS NULL THEN
        EXECUTE 'SET LOCAL ROLE highwater_owner';
        CREATE TABLE connector._migration (
            number     integer PRIMARY KEY,
            name       text NOT NULL,
            sha256     text NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT now()
        );
        COMMENT ON TABLE connector._migration IS 'The numbered migrations that were applied, with their digests.';
        CREATE TABLE connector._repeatable (
            one        boolean PRIMARY KEY DEFAULT true CHECK (one),
            sha256     text NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT now()
        );
        COMMENT ON TABLE connector._repeatable IS 'Digest of the functions, views and grants as they were last applied.';
    END IF;
END
$do$;
