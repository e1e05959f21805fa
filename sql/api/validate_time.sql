-- Rules of the keys that hold times: start_position, schedule and window.

CREATE OR REPLACE FUNCTION connector._time_fault(word text)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._time_fault(word)
--   Why a word is no RFC 3339 time that Kafka can be asked for; NULL where it is one. The date is checked by arithmetic
--   and not by a cast, which would fail, and whose rules are wider than those of the sidecar that reads the word.
    SELECT CASE
        WHEN t.part IS NULL THEN 'is no RFC 3339 time'
        WHEN t.part[4]::integer > 23 OR t.part[5]::integer > 59 OR t.part[6]::integer > 59 THEN 'names a time of day that does not exist'
        WHEN t.part[8]::integer > 14 OR t.part[9]::integer > 59 THEN 'names an offset from UTC that does not exist'
        WHEN t.part[1]::integer < 1971 THEN 'lies before 1971'
        WHEN t.part[2]::integer NOT BETWEEN 1 AND 12 THEN 'names a date that does not exist'
        WHEN t.part[3]::integer NOT BETWEEN 1 AND
            extract(day FROM make_date(t.part[1]::integer, t.part[2]::integer, 1) + interval '1 month' - interval '1 day')
            THEN 'names a date that does not exist'
    END
    FROM (SELECT regexp_match(_time_fault.word,
        '^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d{1,9})?(?:Z|[+-](\d\d):(\d\d))$') AS part) AS t
$fn$;
COMMENT ON FUNCTION connector._time_fault(text) IS 'Why a word is no RFC 3339 time, or NULL.';
REVOKE ALL ON FUNCTION connector._time_fault(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._check_time(spec jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_time(spec)
--   Rules of start_position, schedule and window. A schedule is asked for its next time after a fixed moment: a date
--   that does not come within the eight years that connector.cron_next looks ahead comes at no other moment either.
    SELECT f.severity, f.path, f.message, f.hint
    FROM (SELECT
        connector._text_at(_check_time.spec, 'start_position') AS start_position,
        connector._text_at(_check_time.spec, 'read') AS read,
        connector._text_at(_check_time.spec, 'schedule') AS schedule,
        connector._cron_fault(connector._text_at(_check_time.spec, 'schedule')) AS cron_fault,
        connector._text_at(_check_time.spec, 'window') AS "window"
    ) AS s
    CROSS JOIN LATERAL (VALUES
        ('ERROR', 'spec.start_position', format('start_position %s %s', connector._shown(s.start_position), connector._time_fault(s.start_position)),
            'Use earliest, latest, or a time such as 2026-01-31T06:00:00Z.',
            s.start_position NOT IN ('earliest', 'latest') AND connector._time_fault(s.start_position) IS NOT NULL),
        ('WARN', 'spec.start_position', 'start_position is not read with read: full, which reads the whole retained window',
            'Remove it, or use read: catch_up.', s.start_position IS NOT NULL AND s.read = 'full'),
        ('ERROR', 'spec.schedule', 'schedule ' || s.cron_fault,
            'Write minute hour day-of-month month day-of-week, in UTC, e.g. */5 * * * * for every five minutes.',
            s.cron_fault IS NOT NULL AND s.schedule IS NOT NULL),
        ('ERROR', 'spec.schedule', format('schedule %s names a date that never comes', connector._shown(s.schedule)),
            'Check day of month against month.',
            CASE WHEN s.schedule IS NOT NULL AND s.cron_fault IS NULL THEN connector.cron_next(s.schedule, '2000-01-01 00:00:00+00') IS NULL END),
        ('ERROR', 'spec.schedule', 'schedule does not go with read: continuous, which never ends', 'Remove schedule, or use read: catch_up.',
            s.read = 'continuous' AND _check_time.spec ? 'schedule'),
        ('ERROR', 'spec.window', format('window must be HH:MM-HH:MM, not %s', connector._shown(s."window")),
            'Write UTC times from 00:00 to 23:59; the end is exclusive, 00:00 is midnight: 22:00-00:00.',
            s."window" !~ '^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$'),
        ('ERROR', 'spec.window', 'window ends where it starts, so it is never open', 'Remove it, so that every slot runs, or give another end.',
            split_part(s."window", '-', 1) = split_part(s."window", '-', 2)),
        ('WARN', 'spec.window', 'no time of the schedule lies in the window, so it never runs', 'Correct one of the two; times are UTC.',
            -- CASE: the stepper is asked only about what the rows above have found right.
            CASE WHEN s.schedule IS NOT NULL AND s.cron_fault IS NULL AND s."window" ~ '^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$'
                    AND split_part(s."window", '-', 1) <> split_part(s."window", '-', 2)
                    AND connector.cron_next(s.schedule, '2000-01-01 00:00:00+00') IS NOT NULL
                THEN connector._next_slot(s.schedule, s."window", '2000-01-01 00:00:00+00') IS NULL END),
        ('WARN', 'spec.window', 'window is read only with schedule', 'Remove it, or add a schedule.',
            _check_time.spec ? 'window' AND NOT _check_time.spec ? 'schedule')
    ) AS f (severity, path, message, hint, holds)
    WHERE f.holds
$fn$;
COMMENT ON FUNCTION connector._check_time(jsonb) IS 'Findings about start_position, schedule and window.';
REVOKE ALL ON FUNCTION connector._check_time(jsonb) FROM PUBLIC;
