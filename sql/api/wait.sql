-- Waiting for the end of a run: inside a statement, or as a procedure that holds no snapshot.

CREATE OR REPLACE FUNCTION connector.wait(run_id uuid, timeout interval DEFAULT '5 minutes')
RETURNS connector.runs
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.wait(run_id, timeout)
--   Waits until a run has ended. One that joined another is followed to the run that does the work. Polls: at first every
--   few milliseconds, at most every 200 ms. It holds its statement's snapshot; for long waits CALL connector.catch_up.
-- Returns: the ledger row.
-- Errors:  KC001 the run has not ended in time; P0002 no such run; 55000 the run was made in this very transaction, so
--          it cannot start before this ends; 25001 above READ COMMITTED its end would never be seen; 22023 bad timeout.
-- Touches: connector._run, connector.runs (read, with the caller's rights).
DECLARE
    v_run      connector._run;
    v_row      connector.runs;
    v_deadline timestamptz := clock_timestamp() + timeout;
    v_pause    double precision := 0.002;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'connector.wait cannot see a run end in a % transaction', current_setting('transaction_isolation')
            USING ERRCODE = '25001', HINT = 'Call it in a READ COMMITTED transaction, or outside one.';
    END IF;
    IF timeout IS NULL OR timeout < interval '0' THEN
        RAISE EXCEPTION 'timeout must be an interval of 0 or more, not %', coalesce(timeout::text, 'NULL')
            USING ERRCODE = '22023', HINT = 'Example: SELECT * FROM connector.wait(run_id, ''10 minutes'');';
    END IF;
    LOOP
        SELECT r.* INTO v_run
        FROM connector._run AS r
        WHERE r.run_id = coalesce(v_run.joined_run, v_run.run_id, wait.run_id) AND r.tenant_id = connector.current_tenant();
        IF NOT FOUND THEN
            RAISE EXCEPTION 'run % does not exist', wait.run_id
                USING ERRCODE = 'P0002',
                      HINT    = 'Look for it with: SELECT run_id, connector, status FROM connector.runs ORDER BY scheduled_at DESC;';
        ELSIF v_run.ended_at IS NOT NULL AND v_run.joined_run IS NULL THEN
            SELECT r.* INTO v_row FROM connector.runs AS r WHERE r.run_id = v_run.run_id;
            RETURN v_row;
        ELSIF v_run.created_xid = pg_current_xact_id_if_assigned() THEN
            RAISE EXCEPTION 'run % was made in this transaction and starts only after it: commit first', v_run.run_id
                USING ERRCODE = '55000', HINT = 'COMMIT, then call connector.wait; or, outside a transaction, CALL connector.catch_up(name).';
        ELSIF v_run.joined_run IS NULL THEN
            IF clock_timestamp() >= v_deadline THEN
                PERFORM connector._raise_not_ended(v_run.run_id, v_run.connector, v_run.status, timeout);
            END IF;
            PERFORM pg_sleep(least(v_pause, greatest(extract(epoch FROM v_deadline - clock_timestamp())::double precision, 0)));
            v_pause := least(v_pause * 1.5, 0.2);
        END IF;
    END LOOP;
END
$fn$;
COMMENT ON FUNCTION connector.wait(uuid, interval) IS 'Wait until a run has ended and return its ledger row; an error after the timeout. Commit the transaction that made the run first.';
REVOKE ALL ON FUNCTION connector.wait(uuid, interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.wait(uuid, interval) TO highwater_operator, highwater_reader;

CREATE OR REPLACE FUNCTION connector._raise_not_ended(run_id uuid, connector text, status text, timeout interval)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._raise_not_ended(run_id, connector, status, timeout)
--   Says in which state a run was left that connector.wait no longer waits for. Always raises KC001.
-- Touches: connector.progress, connector.sidecars (read).
DECLARE
    v_state text := status;
BEGIN
    SELECT format('%s, %s of %s offsets read', _raise_not_ended.status, p.done, p.target) INTO v_state
    FROM connector.progress AS p
    WHERE p.run_id = _raise_not_ended.run_id;
    RAISE EXCEPTION 'run % of connector "%" has not ended after %: it is %', run_id, connector, timeout, coalesce(v_state, status)
        USING ERRCODE = 'KC001',
              HINT = CASE
                  WHEN EXISTS (SELECT FROM connector.sidecars AS s WHERE s.last_seen_at > clock_timestamp() - interval '15 seconds')
                      THEN format('It goes on. Wait longer with: SELECT * FROM connector.wait(%L, ''1 hour''); or stop it with: SELECT connector.cancel(%L);', run_id, run_id)
                  ELSE 'No sidecar has been seen for 15 seconds; start one with "highwater serve".'
              END;
END
$fn$;
COMMENT ON FUNCTION connector._raise_not_ended(uuid, text, text, interval) IS 'Internal: the error of connector.wait after its timeout.';
REVOKE ALL ON FUNCTION connector._raise_not_ended(uuid, text, text, interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector._raise_not_ended(uuid, text, text, interval) TO highwater_operator, highwater_reader;

CREATE OR REPLACE PROCEDURE connector.catch_up(
    name text,
    INOUT run_id uuid DEFAULT NULL, INOUT connector text DEFAULT NULL, INOUT endpoint text DEFAULT NULL, INOUT status text DEFAULT NULL,
    INOUT records_in bigint DEFAULT NULL, INOUT records_out bigint DEFAULT NULL, INOUT skipped bigint DEFAULT NULL,
    INOUT dead_letters bigint DEFAULT NULL, INOUT filtered bigint DEFAULT NULL, INOUT tombstones_applied bigint DEFAULT NULL,
    INOUT scheduled_at timestamptz DEFAULT NULL, INOUT started_at timestamptz DEFAULT NULL, INOUT ended_at timestamptz DEFAULT NULL,
    INOUT duration interval DEFAULT NULL, INOUT chunks integer DEFAULT NULL, INOUT hint text DEFAULT NULL,
    INOUT started_by text DEFAULT NULL, INOUT requested_by text DEFAULT NULL, INOUT message text DEFAULT NULL,
    INOUT retryable boolean DEFAULT NULL, INOUT sidecar text DEFAULT NULL, INOUT duplicates bigint DEFAULT NULL, INOUT code text DEFAULT NULL)
LANGUAGE plpgsql
AS $fn$
-- connector.catch_up(name)
--   Runs a connector (after the active run, if there is one), waits for the end and gives the ledger row. The run's log and
--   its progress, once a second, come as NOTICE. Each look is a transaction of its own, so no snapshot is held: call it alone,
--   outside a transaction. Runs with the caller's rights and has no SET clause, for it commits: every name is qualified.
-- Errors:  P0002 no such connector; 2D000 called inside a transaction.
DECLARE
    v_run   uuid := connector.run(catch_up.name, 'wait');
    v_said  bigint := 0;
    v_next  timestamptz := pg_catalog.clock_timestamp() + interval '1 second';
    v_pause double precision := 0.002;
    v_line  record;
BEGIN
    LOOP
        COMMIT;
        FOR v_line IN
            SELECT l.id, l.level, l.message FROM connector._log AS l WHERE l.run_id = v_run AND l.id > v_said ORDER BY l.id
        LOOP
            RAISE NOTICE '%: % %', catch_up.name, v_line.level, v_line.message;
            v_said := v_line.id;
        END LOOP;
        SELECT r.ended_at, r.joined_run INTO v_line FROM connector._run AS r WHERE r.run_id = v_run;
        IF v_line.joined_run IS NOT NULL THEN
            v_run := v_line.joined_run;
        ELSIF v_line.ended_at IS NOT NULL THEN
            EXIT;
        ELSIF pg_catalog.clock_timestamp() >= v_next THEN
            v_next := pg_catalog.clock_timestamp() + interval '1 second';
            FOR v_line IN SELECT p.done, p.target, p.percent, p.bar FROM connector.progress AS p WHERE p.run_id = v_run LOOP
                RAISE NOTICE '%: [%] % of % (% %%)', catch_up.name, v_line.bar, v_line.done, v_line.target, v_line.percent;
            END LOOP;
        END IF;
        PERFORM pg_catalog.pg_sleep(v_pause);
        v_pause := least(v_pause * 1.5, 0.2);
    END LOOP;
    SELECT r.* INTO run_id, connector, endpoint, status, records_in, records_out, skipped, dead_letters, filtered, tombstones_applied,
        scheduled_at, started_at, ended_at, duration, chunks, hint, started_by, requested_by, message, retryable, sidecar, duplicates, code
    FROM connector.runs AS r
    WHERE r.run_id = v_run;
END
$fn$;
COMMENT ON PROCEDURE connector.catch_up IS 'Run a connector, wait for the end and print the ledger row; progress comes as NOTICE. Call it alone, outside a transaction: CALL connector.catch_up(''name'');';
REVOKE ALL ON PROCEDURE connector.catch_up FROM PUBLIC;
GRANT EXECUTE ON PROCEDURE connector.catch_up TO highwater_operator;
