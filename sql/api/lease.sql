-- Who is at work: the lease of a connector, renewed by its sidecar's heartbeat and judged by the database's clock alone.
-- Locks are always taken in the order endpoint, cursor, run, job.

CREATE OR REPLACE FUNCTION connector._lease_is_live(lease_until timestamptz, lease_sidecar text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._lease_is_live(lease_until, lease_sidecar)
--   A lease ends with its time, or earlier when the holder's session is gone: its backend is no more and it has not been
--   heard of for 1.5 s (it beats once a second, and a lost connection is made again within that).
BEGIN
    IF lease_sidecar IS NULL OR lease_until IS NULL OR lease_until <= clock_timestamp() THEN
        RETURN false;
    END IF;
    RETURN NOT EXISTS (
        SELECT
        FROM connector._sidecar AS s
        WHERE s.sidecar = _lease_is_live.lease_sidecar
            AND s.last_seen_at < clock_timestamp() - interval '1.5 seconds'
            AND s.backend_pid NOT IN (SELECT a.pid FROM pg_stat_activity AS a));
END
$fn$;
COMMENT ON FUNCTION connector._lease_is_live(timestamptz, text) IS 'Internal: whether the holder of a lease is still at work.';
REVOKE ALL ON FUNCTION connector._lease_is_live(timestamptz, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._heartbeat(sidecar text, host text, version text, runs uuid[], ttl interval)
RETURNS TABLE (run_id uuid, state text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._heartbeat(sidecar, host, version, runs, ttl)
--   Says that a sidecar lives and renews the leases of the runs it holds. A lease whose row is locked is passed over
--   until the next beat: one stuck connector must not make its sidecar look dead.
-- Returns: the runs to act on: `cancel` (asked to stop) or `lost` (ended, deleted, or the lease has passed on).
-- Touches: connector._sidecar (upsert), connector._endpoint (lease_until).
BEGIN
    INSERT INTO connector._sidecar AS s (sidecar, host, version, backend_pid, running)
    VALUES (_heartbeat.sidecar, _heartbeat.host, _heartbeat.version, pg_backend_pid(), cardinality(_heartbeat.runs))
    ON CONFLICT ON CONSTRAINT _sidecar_pkey DO UPDATE
    SET host = excluded.host,
        version = excluded.version,
        backend_pid = excluded.backend_pid,
        running = excluded.running,
        started_at = CASE WHEN s.last_seen_at < clock_timestamp() - interval '15 seconds' THEN clock_timestamp() ELSE s.started_at END,
        last_seen_at = clock_timestamp();
    IF cardinality(_heartbeat.runs) = 0 THEN
        RETURN;
    END IF;

    UPDATE connector._endpoint AS e
    SET lease_until = clock_timestamp() + _heartbeat.ttl
    WHERE e.connector_id IN (
        SELECT o.connector_id
        FROM connector._endpoint AS o
        WHERE o.lease_run = ANY (_heartbeat.runs) AND o.lease_sidecar = _heartbeat.sidecar
        FOR UPDATE SKIP LOCKED);

    RETURN QUERY
    SELECT h.id, CASE WHEN r.ended_at IS NULL AND e.connector_id IS NOT NULL THEN 'cancel' ELSE 'lost' END
    FROM unnest(_heartbeat.runs) AS h (id)
    LEFT JOIN connector._run AS r ON r.run_id = h.id
    LEFT JOIN connector._endpoint AS e
        ON e.connector_id = r.connector_id AND e.lease_run = r.run_id AND e.lease_sidecar = _heartbeat.sidecar
    WHERE r.status IS DISTINCT FROM 'Scheduled'
        AND (r.run_id IS NULL OR r.ended_at IS NOT NULL OR e.connector_id IS NULL OR r.cancel_requested);
END
$fn$;
COMMENT ON FUNCTION connector._heartbeat(text, text, text, uuid[], interval) IS 'Internal: a sidecar lives; renew its leases and tell it which runs to stop.';
REVOKE ALL ON FUNCTION connector._heartbeat(text, text, text, uuid[], interval) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._release(run_id uuid, sidecar text)
RETURNS void
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._release(run_id, sidecar)
--   Hands a run back: it stays Running, and any sidecar may claim it at once. Nothing happens where the lease is not ours.
-- Touches: connector._endpoint (lease).
UPDATE connector._endpoint AS e
SET lease_sidecar = NULL,
    lease_until = clock_timestamp()
WHERE e.lease_run = _release.run_id AND e.lease_sidecar = _release.sidecar
$fn$;
COMMENT ON FUNCTION connector._release(uuid, text) IS 'Internal: hand a run back to whichever sidecar fetches it next.';
REVOKE ALL ON FUNCTION connector._release(uuid, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._requeue_orphans()
RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._requeue_orphans()
--   Gives runs back to the queue whose sidecar is gone, and runs whose job is (see _lost_jobs). At most 100 of each a call;
--   rows that another sidecar is looking at are left to it.
-- Returns: how many runs were given back.
-- Touches: connector._endpoint (lease), connector._log, connector._sidecar (forgets those silent for a day), the queue.
DECLARE
    v_lost  record;
    v_count integer := 0;
BEGIN
    FOR v_lost IN
        SELECT e.connector_id, e.lease_run, e.lease_sidecar
        FROM connector._endpoint AS e
        JOIN connector._run AS r ON r.run_id = e.lease_run
        WHERE r.status = 'Running'
            AND e.lease_sidecar IS NOT NULL
            AND NOT connector._lease_is_live(e.lease_until, e.lease_sidecar)
        LIMIT 100
        FOR UPDATE OF e SKIP LOCKED
    LOOP
        UPDATE connector._endpoint AS e
        SET lease_sidecar = NULL,
            lease_until = clock_timestamp()
        WHERE e.connector_id = v_lost.connector_id;
        PERFORM connector._say(v_lost.lease_run, 'WARN',
            format('sidecar %s is gone; the run goes back to the queue', v_lost.lease_sidecar));
        PERFORM connector._revive_job(v_lost.lease_run);
        v_count := v_count + 1;
    END LOOP;

    FOR v_lost IN
        SELECT r.run_id
        FROM connector._run AS r
        WHERE r.run_id IN (SELECT connector._lost_jobs(100))
            AND r.status IN ('Scheduled', 'Running')
        FOR UPDATE SKIP LOCKED
    LOOP
        PERFORM connector._revive_job(v_lost.run_id);
        v_count := v_count + 1;
    END LOOP;

    DELETE FROM connector._sidecar AS s WHERE s.last_seen_at < clock_timestamp() - interval '1 day';
    RETURN v_count;
END
$fn$;
COMMENT ON FUNCTION connector._requeue_orphans() IS 'Internal: give runs whose sidecar or job is gone back to the queue.';
REVOKE ALL ON FUNCTION connector._requeue_orphans() FROM PUBLIC;
