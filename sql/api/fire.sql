-- Firing: what becomes of a slot that is due.

CREATE OR REPLACE FUNCTION connector._skip_slot(due connector._schedule, code text, message text)
RETURNS void
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._skip_slot(due, code, message)
--   Writes a slot into the ledger that starts nothing, with the reason. It has no job.
-- Touches: connector._run (insert).
INSERT INTO connector._run (run_id, connector_id, connector, tenant_id, status, code, message, started_by, requested_by, ended_at)
VALUES (gen_random_uuid(), (_skip_slot.due).connector_id, (_skip_slot.due).connector, (_skip_slot.due).tenant_id, 'Cancelled',
    _skip_slot.code, _skip_slot.message, 'schedule', session_user, clock_timestamp())
$fn$;
COMMENT ON FUNCTION connector._skip_slot(connector._schedule, text, text) IS 'Internal: write a slot that starts nothing into the ledger.';
REVOKE ALL ON FUNCTION connector._skip_slot(connector._schedule, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._fire_slot(due connector._schedule, now timestamptz)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._fire_slot(due, now)
--   Starts the run of a slot that is due, or writes down why not: a run of the connector is active or still waits to
--   start, which reads what this one would; or the slot is made up for late, and now the window is closed. One that is at
--   most a minute late is on time, whatever the window says now.
-- Returns: whether a run was started.
-- Touches: connector._run (insert), connector._log (insert), the queue.
DECLARE
    v_late   boolean := now >= due.next_at + interval '1 minute';
    v_slot   text := to_char(due.next_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"');
    v_active record;
    v_run    uuid;
BEGIN
    IF v_late AND NOT connector._in_window(due."window", now) THEN
        PERFORM connector._skip_slot(due, 'skipped_window',
            format('skipped: the slot of %s was missed, and the window %s is closed now', v_slot, due."window"));
        RETURN false;
    END IF;
    SELECT r.run_id, r.status INTO v_active
    FROM connector._run AS r
    WHERE r.connector_id = due.connector_id AND r.status IN ('Running', 'Scheduled')
    ORDER BY r.status, r.scheduled_at -- Running first
    LIMIT 1;
    IF FOUND THEN
        PERFORM connector._skip_slot(due, 'skipped_active', format('skipped: run %s of connector "%s" %s', v_active.run_id, due.connector,
            CASE v_active.status WHEN 'Running' THEN 'is active' ELSE 'has yet to start' END));
        RETURN false;
    END IF;
    v_run := connector._run(due.connector, 'skip', 'schedule');
    IF v_late THEN
        PERFORM connector._say(v_run, 'INFO', format('makes up for the slot of %s, which came while no sidecar fired it', v_slot));
    END IF;
    RETURN true;
END
$fn$;
COMMENT ON FUNCTION connector._fire_slot(connector._schedule, timestamptz) IS 'Internal: start the run of a slot, or write down why not.';
REVOKE ALL ON FUNCTION connector._fire_slot(connector._schedule, timestamptz) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._fire_schedules(sidecar text, now timestamptz DEFAULT clock_timestamp())
RETURNS TABLE (held boolean, leads boolean, taken integer, started integer)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._fire_schedules(sidecar, now)
--   Fires the slots that are due, if this sidecar is or becomes the leader, and steps each on to the first one after now:
--   however many were missed, one run makes up for them. At most 100 a call; a row that somebody is changing is left for
--   the next call. now is the clock of the slots, for tests; leases go by the server's own.
-- Returns: one row. held: this database is a copy, nothing is fired. leads: it is the leader. taken: slots dealt with;
--          100 say that there may be more. started: those that became runs.
-- Locks:   leader, schedule. Waits for none.
-- Touches: connector._leader, connector._schedule (update), connector._run (insert), the queue; and see connector._held.
DECLARE
    v_due connector._schedule;
BEGIN
    taken := 0;
    started := 0;
    held := connector._held();
    leads := NOT held AND connector._lead(sidecar);
    IF leads THEN
        FOR v_due IN
            SELECT s.*
            FROM connector._schedule AS s
            JOIN connector.manifest AS m ON m.connector_id = s.connector_id
            WHERE s.next_at IS NULL OR s.next_at <= _fire_schedules.now
            ORDER BY s.next_at NULLS FIRST
            LIMIT 100
            FOR UPDATE OF s SKIP LOCKED
        LOOP
            taken := taken + 1;
            IF v_due.next_at IS NOT NULL AND connector._fire_slot(v_due, _fire_schedules.now) THEN
                started := started + 1;
            END IF;
            UPDATE connector._schedule AS s
            SET next_at = coalesce(connector._next_slot(s.schedule, s."window", _fire_schedules.now), 'infinity'),
                last_slot = coalesce(s.next_at, s.last_slot)
            WHERE s.connector_id = v_due.connector_id;
        END LOOP;
    END IF;
    RETURN NEXT;
END
$fn$;
COMMENT ON FUNCTION connector._fire_schedules(text, timestamptz) IS 'Internal: fire the slots that are due, if this sidecar is the leader.';
REVOKE ALL ON FUNCTION connector._fire_schedules(text, timestamptz) FROM PUBLIC;
