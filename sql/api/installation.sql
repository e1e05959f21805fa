-- Which database this is. A copy that was restored or renamed holds its schedules until somebody says that it is to work.

CREATE OR REPLACE FUNCTION connector._identity()
RETURNS TABLE (system_identifier bigint, database_name text)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._identity()
--   The database as it can be told from a copy: the identifier that initdb gave the server, and its own name. The
--   identifier is null where the server does not let us read it (PostgreSQL does, some hosted ones do not).
BEGIN
    database_name := current_database();
    BEGIN
        SELECT s.system_identifier INTO system_identifier FROM pg_control_system() AS s;
    EXCEPTION
        WHEN insufficient_privilege OR undefined_function OR feature_not_supported OR undefined_file THEN
            system_identifier := NULL;
    END;
    RETURN NEXT;
END
$fn$;
COMMENT ON FUNCTION connector._identity() IS 'Internal: the server''s identifier and the database''s name.';
REVOKE ALL ON FUNCTION connector._identity() FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._is_copy()
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._is_copy()
--   Whether this is another database than the one whose schedules run. False before the first sidecar has served it. An
--   identifier that is not known, then or now, tells nothing.
SELECT EXISTS (
    SELECT
    FROM connector._installation AS i
    CROSS JOIN connector._identity() AS h
    WHERE i.database_name <> h.database_name OR i.system_identifier <> h.system_identifier)
$fn$;
COMMENT ON FUNCTION connector._is_copy() IS 'Internal: whether this is another database than the one whose schedules run.';
REVOKE ALL ON FUNCTION connector._is_copy() FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._hold(hold boolean)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._hold(hold)
--   Notes that the schedules are held from now on, or no longer. The runs that were copied with the database belong to the
--   original: they end, or a sidecar would take them up here. Waits for nobody: whoever holds a row is passed over.
-- Touches: connector._installation, _schedule, _endpoint, _run (update), _log (insert), the queue.
DECLARE
    v_origin text;
    v_runs   uuid[];
    v_run    uuid;
BEGIN
    UPDATE connector._installation AS i
    SET held_since = CASE WHEN _hold.hold THEN clock_timestamp() END
    WHERE i.one IN (SELECT o.one FROM connector._installation AS o WHERE (o.held_since IS NULL) = _hold.hold FOR UPDATE SKIP LOCKED)
    RETURNING i.database_name INTO v_origin;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE connector._schedule AS s
    SET next_at = NULL
    WHERE s.connector_id IN (SELECT o.connector_id FROM connector._schedule AS o FOR UPDATE SKIP LOCKED);
    IF NOT hold THEN
        RETURN;
    END IF;
    UPDATE connector._endpoint AS e
    SET lease_run = NULL, lease_sidecar = NULL, lease_until = NULL
    WHERE e.connector_id IN (SELECT o.connector_id FROM connector._endpoint AS o WHERE o.lease_run IS NOT NULL FOR UPDATE SKIP LOCKED);
    v_runs := ARRAY(SELECT r.run_id FROM connector._run AS r WHERE r.status IN ('Scheduled', 'Running') FOR UPDATE SKIP LOCKED);
    FOREACH v_run IN ARRAY v_runs LOOP
        PERFORM connector._conclude(v_run, 'Cancelled', 'cancelled',
            format('cancelled: it was copied with the database, which is %s now and was %s', current_database(), v_origin),
            'The original goes on with it. If this database replaces the original: SELECT connector.adopt();');
    END LOOP;
    PERFORM connector._cancel_jobs(v_runs);
END
$fn$;
COMMENT ON FUNCTION connector._hold(boolean) IS 'Internal: hold the schedules of a copied database, or let them go.';
REVOKE ALL ON FUNCTION connector._hold(boolean) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._held()
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._held()
--   What a sidecar asks before it does anything of its own: whether this database is a copy whose schedules are held. The
--   first sidecar that serves a database writes its identity down.
-- Touches: connector._installation (insert, update), and see connector._hold.
DECLARE
    v_copy boolean := connector._is_copy();
BEGIN
    IF NOT EXISTS (SELECT FROM connector._installation AS i WHERE (i.held_since IS NOT NULL) = v_copy) THEN
        INSERT INTO connector._installation (system_identifier, database_name)
        SELECT h.system_identifier, h.database_name
        FROM connector._identity() AS h
        WHERE NOT EXISTS (SELECT FROM connector._installation AS i) -- even DO NOTHING would wait for whoever changes the row
        ON CONFLICT DO NOTHING;
        PERFORM connector._hold(v_copy);
    END IF;
    RETURN v_copy;
END
$fn$;
COMMENT ON FUNCTION connector._held() IS 'Internal: whether this database is a copy whose schedules are held.';
REVOKE ALL ON FUNCTION connector._held() FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector.adopt()
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.adopt()
--   Says that this database, a copy of the one whose schedules ran, is to work by itself from now on: each schedule goes on
--   with its next slot, and those that passed meanwhile are not made up for.
-- Returns: false where nothing was held.
-- Errors:  42501 the caller's role is bound to a tenant, and the database holds others' connectors too.
-- Touches: connector._installation, connector._schedule (update), connector._audit.
DECLARE
    v_was connector._installation;
    v_is  record;
BEGIN
    IF NOT connector._is_copy() THEN
        RETURN false;
    END IF;
    IF EXISTS (SELECT FROM connector.tenant_roles AS t JOIN connector.manifest AS m ON m.tenant_id <> t.tenant_id WHERE t.role = session_user) THEN
        RAISE EXCEPTION 'role "%" belongs to one tenant and may not let the connectors of others run', session_user
            USING ERRCODE = '42501',
                  HINT = 'Call it as a role that connector.tenant_roles does not list.';
    END IF;
    SELECT i.* INTO v_was FROM connector._installation AS i FOR UPDATE;
    SELECT h.* INTO v_is FROM connector._identity() AS h;
    UPDATE connector._installation AS i
    SET system_identifier = v_is.system_identifier,
        database_name = v_is.database_name,
        adopted_at = clock_timestamp(),
        held_since = NULL;
    UPDATE connector._schedule AS s
    SET next_at = coalesce(connector._next_slot(s.schedule, s."window", clock_timestamp()), 'infinity');
    -- Identifiers as text: a JSON number of that size is rounded by many readers.
    PERFORM connector._audit('adopt', NULL, coalesce(connector.current_tenant(), 1), jsonb_build_object(
        'database', v_is.database_name, 'system_identifier', v_is.system_identifier::text,
        'was_database', v_was.database_name, 'was_system_identifier', v_was.system_identifier::text));
    RETURN true;
END
$fn$;
COMMENT ON FUNCTION connector.adopt() IS 'Let the schedules of a restored or renamed database run: they are held until this is called. False if nothing was held.';
REVOKE ALL ON FUNCTION connector.adopt() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.adopt() TO highwater_operator;
