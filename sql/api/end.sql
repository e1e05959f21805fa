-- The end of a run, and its words on the way.

CREATE OR REPLACE FUNCTION connector._end(run_id uuid, fence bigint, status text, code text, message text, hint text,
    retryable boolean, reached jsonb)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._end(run_id, fence, status, code, message, hint, retryable, reached)
--   Writes the end of a run, gives up its lease and lets the next waiting run start. After a Completed run the table is as
--   of the moment the run measured the heads. A spent poison budget starts anew with the next run.
-- reached: {"0": "at target", ...}: words of connector.run_partitions.reached; partitions left out keep theirs.
-- Returns: false where the lease is no longer this fence's or the run has ended; nothing is written then.
-- Locks:   endpoint, run.
-- Touches: connector._endpoint, connector._run, connector._run_partition (update), the queue.
DECLARE
    v_run connector._run;
BEGIN
    PERFORM
    FROM connector._endpoint AS e
    WHERE e.connector_id = (SELECT r.connector_id FROM connector._run AS r WHERE r.run_id = _end.run_id)
        AND e.lease_run = _end.run_id
        AND e.fence = _end.fence
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE connector._run AS r
    SET status = _end.status,
        code = _end.code,
        message = _end.message,
        hint = _end.hint,
        retryable = _end.retryable,
        ended_at = clock_timestamp()
    WHERE r.run_id = _end.run_id AND r.status = 'Running'
    RETURNING r.* INTO v_run;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE connector._endpoint AS e
    SET lease_run = NULL,
        lease_sidecar = NULL,
        lease_until = NULL,
        poison_chunks = CASE WHEN v_run.started_by = 'retry' THEN e.poison_chunks WHEN _end.code = 'poison_budget' THEN 0 ELSE v_run.poison_chunks END,
        data_as_of = CASE WHEN _end.status = 'Completed' THEN coalesce(v_run.measured_at, e.data_as_of) ELSE e.data_as_of END
    WHERE e.connector_id = v_run.connector_id;
    UPDATE connector._run_partition AS p
    SET reached = w.word
    FROM jsonb_each_text(coalesce(_end.reached, '{}')) AS w (partition, word)
    WHERE p.run_id = _end.run_id AND p.partition = w.partition::integer AND p.reached IS DISTINCT FROM w.word;
    PERFORM connector._wake_waiting(v_run.connector_id);
    RETURN true;
END
$fn$;
COMMENT ON FUNCTION connector._end(uuid, bigint, text, text, text, text, boolean, jsonb) IS 'Internal: write the end of a run and give up its lease.';
REVOKE ALL ON FUNCTION connector._end(uuid, bigint, text, text, text, text, boolean, jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._conclude(run_id uuid, status text, code text, message text, hint text DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._conclude(run_id, status, code, message, hint)
--   Writes the end of a run whose lease nobody needs to give up: one that never started, or whose connector is gone.
-- Returns: false where the run has ended already.
-- Touches: connector._run (update).
BEGIN
    UPDATE connector._run AS r
    SET status = _conclude.status,
        code = _conclude.code,
        message = _conclude.message,
        hint = _conclude.hint,
        ended_at = clock_timestamp()
    WHERE r.run_id = _conclude.run_id AND r.ended_at IS NULL;
    RETURN FOUND;
END
$fn$;
COMMENT ON FUNCTION connector._conclude(uuid, text, text, text, text) IS 'Internal: write the end of a run that holds no lease.';
REVOKE ALL ON FUNCTION connector._conclude(uuid, text, text, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._say(run_id uuid, level text, message text)
RETURNS void
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._say(run_id, level, message)
--   Adds a line to connector.log; level is INFO, WARN or ERROR. Nothing for a run that is not in the ledger.
-- Touches: connector._log (insert).
INSERT INTO connector._log (run_id, connector, tenant_id, level, message)
SELECT r.run_id, r.connector, r.tenant_id, _say.level, _say.message
FROM connector._run AS r
WHERE r.run_id = _say.run_id
$fn$;
COMMENT ON FUNCTION connector._say(uuid, text, text) IS 'Internal: add a line to a run''s log.';
REVOKE ALL ON FUNCTION connector._say(uuid, text, text) FROM PUBLIC;
