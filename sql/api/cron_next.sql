-- The next time that a cron expression names.

CREATE OR REPLACE FUNCTION connector.cron_next(expr text, after timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql
IMMUTABLE
STRICT
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.cron_next(expr, after)
--   The first minute later than "after" that the five-field cron expression names, in UTC. Where day of month and day of
--   week are both restricted, a day that matches either counts, as cron has always done.
-- Returns: NULL for a date that never comes (30 February), and after an infinite time.
-- Errors:  22023 an expression that is not understood.
-- Calls:   connector._cron_fields, connector._cron_fault.
DECLARE
    -- 29 February is at most eight years away (1896 to 1904, 2096 to 2104): a date beyond that never comes.
    v_days_max constant integer := 8 * 366;
    v_at       timestamp;
    v_day      date;
    v_first    date;
    v_from     integer; -- minute of the day from which times count
    v_minutes  integer[];
    v_hours    integer[];
    v_dates    integer[];
    v_months   integer[];
    v_weekdays integer[];
    v_either   boolean;
    v_hour     integer;
BEGIN
    SELECT max(f.members) FILTER (WHERE f.ordinal = 1), max(f.members) FILTER (WHERE f.ordinal = 2),
        max(f.members) FILTER (WHERE f.ordinal = 3), max(f.members) FILTER (WHERE f.ordinal = 4),
        max(f.members) FILTER (WHERE f.ordinal = 5), bool_and(f.restricted) FILTER (WHERE f.ordinal IN (3, 5))
    INTO v_minutes, v_hours, v_dates, v_months, v_weekdays, v_either
    FROM connector._cron_fields(expr) AS f;
    IF num_nulls(v_minutes, v_hours, v_dates, v_months, v_weekdays) > 0 THEN
        RAISE EXCEPTION 'schedule % %', connector._shown(expr), connector._cron_fault(expr)
            USING ERRCODE = '22023',
                  HINT = 'Write minute hour day-of-month month day-of-week, in UTC, e.g. */5 * * * * for every five minutes.';
    END IF;
    IF NOT isfinite(after) THEN
        RETURN NULL;
    END IF;

    v_at := after AT TIME ZONE 'UTC';
    v_first := v_at::date;
    v_day := v_first;
    v_from := extract(hour FROM v_at)::integer * 60 + extract(minute FROM v_at)::integer + 1;
    WHILE v_day <= v_first + v_days_max LOOP
        IF extract(month FROM v_day)::integer <> ALL (v_months) THEN
            v_day := (date_trunc('month', v_day::timestamp) + interval '1 month')::date;
            v_from := 0;
            CONTINUE;
        END IF;
        IF (CASE WHEN v_either
            THEN extract(day FROM v_day)::integer = ANY (v_dates) OR extract(dow FROM v_day)::integer = ANY (v_weekdays)
            ELSE extract(day FROM v_day)::integer = ANY (v_dates) AND extract(dow FROM v_day)::integer = ANY (v_weekdays)
        END) THEN
            SELECT min(h) INTO v_hour
            FROM unnest(v_hours) AS h
            WHERE h > v_from / 60 OR (h = v_from / 60 AND v_minutes[cardinality(v_minutes)] >= v_from % 60);
            IF v_hour IS NOT NULL THEN
                RETURN (v_day + make_interval(hours => v_hour, mins => (
                    SELECT min(m) FROM unnest(v_minutes) AS m WHERE v_hour > v_from / 60 OR m >= v_from % 60))) AT TIME ZONE 'UTC';
            END IF;
        END IF;
        v_day := v_day + 1;
        v_from := 0;
    END LOOP;
    RETURN NULL;
END
$fn$;
COMMENT ON FUNCTION connector.cron_next(text, timestamptz) IS 'The next time after a given one that a five-field cron expression names, in UTC; NULL if there is none.';
REVOKE ALL ON FUNCTION connector.cron_next(text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.cron_next(text, timestamptz) TO highwater_operator, highwater_reader;
