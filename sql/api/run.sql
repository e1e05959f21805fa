-- Asking for a run. The ledger row and the job are made in the caller's transaction: a rollback leaves neither.

CREATE OR REPLACE FUNCTION connector._find(name text)
RETURNS connector.manifest
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._find(name)
--   The manifest row of a connector of the session's tenant. Another tenant's name is answered as an unknown one.
-- Errors:  P0002 no such connector.
-- Touches: connector.manifest (read).
DECLARE
    v_manifest connector.manifest;
BEGIN
    SELECT m.* INTO v_manifest
    FROM connector.manifest AS m
    WHERE m.name = _find.name AND m.tenant_id = connector.current_tenant();
    IF NOT FOUND THEN
        RAISE EXCEPTION 'connector "%" does not exist', _find.name
            USING ERRCODE = 'P0002', HINT = 'List the names with: SELECT name FROM connector.connectors;';
    END IF;
    RETURN v_manifest;
END
$fn$;
COMMENT ON FUNCTION connector._find(text) IS 'Internal: the manifest row of a connector, or P0002.';
REVOKE ALL ON FUNCTION connector._find(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._run(name text, if_active text, started_by text)
RETURNS uuid
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._run(name, if_active, started_by)
--   Makes a run and its job, or joins a waiting run. Looks at no tenant: its callers have done so.
--   A waiting run is joined only as this statement sees it: under REPEATABLE READ the transaction might still see one
--   waiting that has long run, and the request would be lost, so there it always makes its own. Nothing is locked.
-- Returns: the run's id.
-- Errors:  P0002 no such connector; 22023 if_active is neither skip nor wait.
-- Touches: connector._run (insert), the queue.
DECLARE
    v_run uuid;
BEGIN
    IF if_active IS NULL OR if_active NOT IN ('skip', 'wait') THEN
        RAISE EXCEPTION 'if_active must be skip or wait, not %', coalesce(quote_literal(if_active), 'NULL')
            USING ERRCODE = '22023',
                  HINT    = format('skip: end at once if a run is active. wait: run after it. Example: SELECT connector.run(%L, ''wait'');', name);
    END IF;
    IF if_active = 'wait' AND current_setting('transaction_isolation') = 'read committed' THEN
        SELECT r.run_id INTO v_run
        FROM connector.manifest AS m
        JOIN connector._run AS r ON r.connector_id = m.connector_id
        WHERE m.name = _run.name AND r.status = 'Scheduled' AND r.if_active = 'wait' AND r.started_by <> 'retry'
        ORDER BY r.scheduled_at
        LIMIT 1;
        IF FOUND THEN
            RETURN v_run;
        END IF;
    END IF;

    INSERT INTO connector._run AS r (run_id, connector_id, connector, tenant_id, started_by, requested_by, if_active)
    SELECT gen_random_uuid(), m.connector_id, m.name, m.tenant_id, _run.started_by, session_user, _run.if_active
    FROM connector.manifest AS m
    WHERE m.name = _run.name
    RETURNING r.run_id INTO v_run;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'connector "%" does not exist', _run.name
            USING ERRCODE = 'P0002', HINT = 'List the names with: SELECT name FROM connector.connectors;';
    END IF;
    PERFORM connector._enqueue(v_run);
    RETURN v_run;
END
$fn$;
COMMENT ON FUNCTION connector._run(text, text, text) IS 'Internal: make a run and its job, or join a waiting run.';
REVOKE ALL ON FUNCTION connector._run(text, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._warn_no_sidecar()
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._warn_no_sidecar()
--   Tells whoever asked for a run that nobody is there to carry it out yet: WARNING KC002.
-- Touches: connector._sidecar (read).
BEGIN
    IF NOT EXISTS (SELECT FROM connector._sidecar AS s WHERE s.last_seen_at > clock_timestamp() - interval '15 seconds') THEN
        RAISE WARNING 'no sidecar has been seen for 15 seconds: the run is queued and starts when one comes'
            USING ERRCODE = 'KC002', HINT = 'Start one with "highwater serve" and look at: SELECT * FROM connector.sidecars;';
    END IF;
END
$fn$;
COMMENT ON FUNCTION connector._warn_no_sidecar() IS 'Internal: warn where no sidecar is there to carry out a run.';
REVOKE ALL ON FUNCTION connector._warn_no_sidecar() FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector.run(name text, if_active text DEFAULT 'skip')
RETURNS uuid
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.run(name, if_active)
--   Asks for a run, which reads from the stored positions to the ends as they are when it starts. It begins once this
--   transaction has committed.
-- if_active: what happens if another run of the connector is active then. skip: this run ends Cancelled. wait: it runs
--          afterwards; a run that waits already is joined, and its id returned.
-- Returns: the run's id, for connector.wait, connector.cancel and connector.runs.
-- Errors:  P0002 no such connector; 22023 bad if_active. Warnings KC002: no sidecar was seen for 15 s; KC003: the database
--          is a copy whose schedules are held.
-- Touches: connector._run (insert), the queue.
DECLARE
    v_copy boolean := connector._is_copy();
    v_run  uuid;
BEGIN
    IF v_copy THEN
        PERFORM connector._hold(true); -- before the run is made: what is there already came with the copy
    END IF;
    v_run := connector._run((connector._find(name)).name, if_active, 'manual');
    IF v_copy THEN
        RAISE WARNING 'this database is a copy of the one whose schedules run; this run reads the same topic as the original does'
            USING ERRCODE = 'KC003', HINT = 'Schedules are held here. If this database is to work by itself: SELECT connector.adopt();';
    END IF;
    PERFORM connector._warn_no_sidecar();
    RETURN v_run;
END
$fn$;
COMMENT ON FUNCTION connector.run(text, text) IS 'Ask for a run of a connector; returns its id. if_active says what to do if another run is active when it starts: skip (end Cancelled) or wait (run afterwards).';
REVOKE ALL ON FUNCTION connector.run(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.run(text, text) TO highwater_operator;

CREATE OR REPLACE FUNCTION connector.cancel(run_id uuid)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.cancel(run_id)
--   Stops a run: one that has not started ends Cancelled at once; a running one stops after the chunk in hand and keeps
--   what it has landed. The wake-up is a hint: the sidecar also looks by itself once a second.
-- Returns: false where the run had ended already.
-- Errors:  P0002 no such run.
-- Touches: connector._run (update), the queue.
DECLARE
    v_run connector._run;
BEGIN
    SELECT r.* INTO v_run
    FROM connector._run AS r
    WHERE r.run_id = cancel.run_id AND r.tenant_id = connector.current_tenant()
    FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'run % does not exist', cancel.run_id
            USING ERRCODE = 'P0002', HINT = 'Look for it with: SELECT run_id, connector, status FROM connector.runs ORDER BY scheduled_at DESC;';
    END IF;
    IF v_run.ended_at IS NOT NULL THEN
        RETURN false;
    END IF;
    UPDATE connector._run AS r
    SET cancel_requested = true,
        cancelled_by = coalesce(r.cancelled_by, session_user)
    WHERE r.run_id = cancel.run_id;
    IF v_run.status = 'Scheduled' THEN
        PERFORM connector._conclude(cancel.run_id, 'Cancelled', 'cancelled', format('cancelled by %s before it started', session_user));
        PERFORM connector._cancel_jobs(ARRAY[cancel.run_id]);
    ELSE
        PERFORM pg_notify('highwater', cancel.run_id::text);
    END IF;
    RETURN true;
END
$fn$;
COMMENT ON FUNCTION connector.cancel(uuid) IS 'Stop a run; false if it had ended. A running one stops after the chunk in hand and keeps what it has landed.';
REVOKE ALL ON FUNCTION connector.cancel(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.cancel(uuid) TO highwater_operator;
