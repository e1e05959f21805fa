-- Slots: the times of a schedule that its window lets through. One stepper for the validator, the manifest's trigger and
-- the sidecar that fires them.

CREATE OR REPLACE FUNCTION connector._in_window(hours text, at timestamptz)
RETURNS boolean
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._in_window(hours, at)
--   Whether a moment lies in the window `hours`, HH:MM-HH:MM of the day, UTC, end exclusive; one whose end comes before
--   its start crosses midnight. Every moment lies in a window that is null.
    SELECT CASE
        WHEN w.opens IS NULL THEN true
        WHEN w.opens < w.closes THEN w.moment >= w.opens AND w.moment < w.closes
        ELSE w.moment >= w.opens OR w.moment < w.closes
    END
    FROM (SELECT split_part(_in_window.hours, '-', 1)::time AS opens,
        split_part(_in_window.hours, '-', 2)::time AS closes,
        (_in_window.at AT TIME ZONE 'UTC')::time AS moment) AS w
$fn$;
COMMENT ON FUNCTION connector._in_window(text, timestamptz) IS 'Internal: whether a moment lies in a window of the day.';
REVOKE ALL ON FUNCTION connector._in_window(text, timestamptz) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._next_slot(schedule text, hours text, after timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._next_slot(schedule, hours, after)
--   The first minute later than "after" that the schedule names and that lies in the window.
-- Returns: NULL where there is none: no date ever comes, or no time of the schedule lies in the window.
-- Errors:  22023 a schedule that is not understood.
-- Calls:   connector.cron_next, connector._in_window.
DECLARE
    -- A schedule has the same times on each of its days, so that a day of its own which is looked at from the window's
    -- opening on decides: the day of the first time, the next one, and that one once more from the opening.
    v_jumps_max CONSTANT integer := 4;
    v_at        timestamptz := connector.cron_next(schedule, after);
    v_opens     timestamptz;
BEGIN
    FOR v_jump IN 0..v_jumps_max LOOP
        IF v_at IS NULL OR connector._in_window(hours, v_at) THEN
            RETURN v_at;
        END IF;
        v_opens := ((v_at AT TIME ZONE 'UTC')::date + split_part(hours, '-', 1)::time) AT TIME ZONE 'UTC';
        IF v_opens <= v_at THEN
            v_opens := v_opens + interval '24 hours';
        END IF;
        v_at := connector.cron_next(schedule, v_opens - interval '1 minute');
    END LOOP;
    RETURN NULL;
END
$fn$;
COMMENT ON FUNCTION connector._next_slot(text, text, timestamptz) IS 'Internal: the next time of a schedule that lies in its window, or NULL.';
REVOKE ALL ON FUNCTION connector._next_slot(text, text, timestamptz) FROM PUBLIC;
