-- The only place that knows River's job table: the job of a run is made, woken, given back and withdrawn here.
-- A test compares the row that _enqueue inserts with the one that River's own Go client would insert.

CREATE OR REPLACE FUNCTION connector._wake()
RETURNS void
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._wake()
--   Tells River's clients to look for jobs when this transaction commits. A hint only: they also poll.
SELECT pg_notify('connector_queue.river_insert', '{"queue":"connector"}')
$fn$;
COMMENT ON FUNCTION connector._wake() IS 'Internal: tell the sidecars to look for jobs once this transaction has committed.';
REVOKE ALL ON FUNCTION connector._wake() FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._enqueue(run_id uuid, wake boolean DEFAULT true)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._enqueue(run_id, wake)
--   Makes the job of a run, in the caller's transaction; wake says whether to notify. The job holds the run's id and
--   nothing else: whoever could forge one could ask for nothing that the ledger does not say.
-- Returns: the job's id, which is also stored in the ledger row.
-- Touches: connector_queue.river_job (insert), connector._run (job_id).
DECLARE
    v_job bigint;
BEGIN
    INSERT INTO connector_queue.river_job AS j (kind, queue, args)
    VALUES ('connector_run', 'connector', jsonb_build_object('run_id', _enqueue.run_id))
    RETURNING j.id INTO v_job;
    UPDATE connector._run AS r SET job_id = v_job WHERE r.run_id = _enqueue.run_id;
    IF _enqueue.wake THEN
        PERFORM connector._wake();
    END IF;
    RETURN v_job;
END
$fn$;
COMMENT ON FUNCTION connector._enqueue(uuid, boolean) IS 'Internal: make the River job of a run.';
REVOKE ALL ON FUNCTION connector._enqueue(uuid, boolean) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._wake_waiting(connector_id uuid)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._wake_waiting(connector_id)
--   The connector is free: makes the oldest waiting run's job due now. One is enough, it folds the others; and one row
--   cannot deadlock with River's scheduler. A job that is just being put to sleep is missed and wakes by itself.
-- Returns: whether there was one.
-- Touches: connector_queue.river_job (update).
BEGIN
    UPDATE connector_queue.river_job AS j
    SET state = 'available',
        scheduled_at = now()
    WHERE j.id = (
        SELECT w.id
        FROM connector._run AS r
        JOIN connector_queue.river_job AS w ON w.id = r.job_id
        WHERE r.connector_id = _wake_waiting.connector_id
            AND r.status = 'Scheduled'
            AND w.state IN ('available', 'scheduled', 'retryable')
        ORDER BY r.scheduled_at
        LIMIT 1
        FOR UPDATE OF w SKIP LOCKED);
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM connector._wake();
    RETURN true;
END
$fn$;
COMMENT ON FUNCTION connector._wake_waiting(uuid) IS 'Internal: let the oldest waiting run of a connector start now.';
REVOKE ALL ON FUNCTION connector._wake_waiting(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._revive_job(run_id uuid)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._revive_job(run_id)
--   Makes sure that a sidecar will fetch the run: its job becomes available again, or a new one is made where it is gone
--   or final. A job that failed is due in 10 s rather than now, so that a lasting fault is not retried in a hot loop.
-- Touches: connector_queue.river_job (update or insert), connector._run (job_id).
BEGIN
    UPDATE connector_queue.river_job AS j
    SET state = 'available',
        attempt = CASE WHEN j.state = 'running' THEN greatest(j.attempt - 1, 0) ELSE j.attempt END,
        scheduled_at = CASE WHEN j.state = 'retryable' THEN least(j.scheduled_at, now() + interval '10 seconds') ELSE now() END
    FROM connector._run AS r
    WHERE r.run_id = _revive_job.run_id
        AND j.id = r.job_id
        AND j.state NOT IN ('completed', 'cancelled', 'discarded');
    IF FOUND THEN
        PERFORM connector._wake();
    ELSE
        PERFORM connector._enqueue(_revive_job.run_id);
    END IF;
END
$fn$;
COMMENT ON FUNCTION connector._revive_job(uuid) IS 'Internal: see to it that a run has a job that a sidecar will fetch.';
REVOKE ALL ON FUNCTION connector._revive_job(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._cancel_jobs(runs uuid[])
RETURNS void
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._cancel_jobs(runs)
--   Withdraws the jobs of runs that have ended. One that a worker holds already is left to it: it asks the ledger first
--   and finds that there is nothing to do.
-- Touches: connector_queue.river_job (update).
UPDATE connector_queue.river_job AS j
SET state = 'cancelled',
    finalized_at = now()
FROM connector._run AS r
WHERE r.run_id = ANY (_cancel_jobs.runs)
    AND j.id = r.job_id
    AND j.state IN ('available', 'scheduled', 'retryable', 'pending')
$fn$;
COMMENT ON FUNCTION connector._cancel_jobs(uuid[]) IS 'Internal: withdraw the jobs of runs that have ended.';
REVOKE ALL ON FUNCTION connector._cancel_jobs(uuid[]) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._lost_jobs(most integer)
RETURNS SETOF uuid
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._lost_jobs(most)
--   Runs that nobody holds and nobody will fetch: the job is gone, final, or has been in a worker's hands for 12 s
--   without the run being claimed (that worker died in between); or it failed and River would wait long.
-- Returns: run ids, at most `most`.
SELECT r.run_id
FROM connector._run AS r
LEFT JOIN connector_queue.river_job AS j ON j.id = r.job_id
LEFT JOIN connector._endpoint AS e ON e.connector_id = r.connector_id AND e.lease_run = r.run_id
WHERE r.status IN ('Scheduled', 'Running')
    AND e.lease_sidecar IS NULL
    AND (j.id IS NULL
        OR j.state IN ('completed', 'cancelled', 'discarded')
        OR (j.state = 'running' AND greatest(j.attempted_at, e.lease_until) < clock_timestamp() - interval '12 seconds')
        OR (j.state = 'retryable' AND j.scheduled_at > clock_timestamp() + interval '15 seconds'))
LIMIT _lost_jobs.most
$fn$;
COMMENT ON FUNCTION connector._lost_jobs(integer) IS 'Internal: active runs that nobody holds and no sidecar would fetch.';
REVOKE ALL ON FUNCTION connector._lost_jobs(integer) FROM PUBLIC;
