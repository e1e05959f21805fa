-- Five-field cron in UTC: one parser and one stepper for the validator, which works where no sidecar is, and for the
-- leader that starts runs.
-- The grammar: minute hour day-of-month month day-of-week; each a list of *, n, a-b, with /step after * , a-b or n
-- (n/step runs to the end); months JAN-DEC and days SUN-SAT by name as well; 7 is Sunday; no ranges that wrap, no seconds,
-- no time zone, no ?, L, W, # and no @names.

CREATE OR REPLACE FUNCTION connector._cron_members(field text, low integer, high integer, last integer, names text[])
RETURNS integer[]
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._cron_members(field, low, high, last, names)
--   The numbers that one field allows; names are the words for low, low + 1, …, where the field has any; last
--   is where * and n/step end, which for the day of week is before high: 7 is Sunday only where it is written.
-- Returns: NULL for a field that is not understood.
DECLARE
    v_members integer[] := ARRAY[]::integer[];
    v_item    text;
    v_part    text[];
    v_from    integer;
    v_to      integer;
BEGIN
    FOREACH v_item IN ARRAY string_to_array(upper(field), ',') LOOP
        v_part := regexp_match(v_item, '^(\*|[0-9]{1,2}|[A-Z]{3})(?:-([0-9]{1,2}|[A-Z]{3}))?(?:/([0-9]{1,2}))?$');
        IF v_part IS NULL OR (v_part[1] = '*' AND v_part[2] IS NOT NULL) OR v_part[3]::integer = 0 THEN
            RETURN NULL;
        END IF;
        v_from := CASE
            WHEN v_part[1] = '*' THEN low
            WHEN v_part[1] ~ '^[0-9]' THEN v_part[1]::integer
            ELSE low - 1 + array_position(names, v_part[1])
        END;
        v_to := CASE
            WHEN v_part[2] ~ '^[0-9]' THEN v_part[2]::integer
            WHEN v_part[2] IS NOT NULL THEN low - 1 + array_position(names, v_part[2])
            WHEN v_part[1] = '*' OR v_part[3] IS NOT NULL THEN last
            ELSE v_from
        END;
        IF v_from IS NULL OR v_to IS NULL OR v_from < low OR v_to > high OR v_from > v_to THEN
            RETURN NULL;
        END IF;
        v_members := v_members || ARRAY(SELECT generate_series(v_from, v_to, coalesce(v_part[3]::integer, 1)));
    END LOOP;
    RETURN v_members;
END
$fn$;
COMMENT ON FUNCTION connector._cron_members(text, integer, integer, integer, text[]) IS 'The numbers one cron field allows, or NULL.';
REVOKE ALL ON FUNCTION connector._cron_members(text, integer, integer, integer, text[]) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._cron_fields(expr text)
RETURNS TABLE (ordinal integer, label text, source text, members integer[], restricted boolean)
LANGUAGE sql
IMMUTABLE
ROWS 5
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._cron_fields(expr)
--   The five fields in order; members is NULL for one that is not understood, restricted says that it allows less than *.
-- Returns: no row where there are not exactly five fields.
    SELECT f.ordinal, f.label, p.parts[f.ordinal],
        -- Modulo 7 for the day of week alone: 7 is Sunday too, so that Friday to Sunday can be written 5-7.
        CASE WHEN m.members IS NOT NULL THEN
            ARRAY(SELECT DISTINCT CASE WHEN f.ordinal = 5 THEN d % 7 ELSE d END FROM unnest(m.members) AS d ORDER BY 1)
        END,
        p.parts[f.ordinal] !~ '(^|,)\*(/0?1)?(,|$)'
    FROM (SELECT regexp_split_to_array(btrim(_cron_fields.expr, E' \t'), '[ \t]+') AS parts) AS p
    CROSS JOIN (VALUES
            (1, 'minute', 0, 59, 59, NULL::text[]),
            (2, 'hour', 0, 23, 23, NULL),
            (3, 'day of month', 1, 31, 31, NULL),
            (4, 'month', 1, 12, 12, '{JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC}'),
            (5, 'day of week', 0, 7, 6, '{SUN,MON,TUE,WED,THU,FRI,SAT}')
        ) AS f (ordinal, label, low, high, last, names)
    CROSS JOIN LATERAL (SELECT connector._cron_members(p.parts[f.ordinal], f.low, f.high, f.last, f.names) AS members) AS m
    WHERE cardinality(p.parts) = 5 AND length(_cron_fields.expr) <= 500
    ORDER BY f.ordinal
$fn$;
COMMENT ON FUNCTION connector._cron_fields(text) IS 'The five fields of a cron expression, parsed.';
REVOKE ALL ON FUNCTION connector._cron_fields(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._cron_fault(expr text)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._cron_fault(expr)
--   What is wrong with the form of a cron expression, in words that follow its name; NULL where nothing is.
    SELECT CASE
        WHEN count(*) = 0 THEN 'must have five fields: minute, hour, day of month, month, day of week'
        ELSE string_agg(format('has a %s that is not understood: %s', f.label, connector._shown(f.source)), '; it '
            ORDER BY f.ordinal) FILTER (WHERE f.members IS NULL)
    END
    FROM connector._cron_fields(_cron_fault.expr) AS f
$fn$;
COMMENT ON FUNCTION connector._cron_fault(text) IS 'What is wrong with a cron expression, or NULL.';
REVOKE ALL ON FUNCTION connector._cron_fault(text) FROM PUBLIC;
