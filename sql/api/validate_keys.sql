-- What the key table alone can judge: unknown keys, missing keys, types, ranges and words.

CREATE OR REPLACE FUNCTION connector._spec_values(spec jsonb)
RETURNS TABLE (parent text, leaf text, value jsonb)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._spec_values(spec)
--   Every key of a spec with its value, those inside nested blocks too; parent is '' for a key of the first level.
    SELECT '', e.key, e.value FROM connector._pairs(_spec_values.spec) AS e
    UNION ALL
    SELECT k.key, e.key, e.value
    FROM connector._spec_keys() AS k
    CROSS JOIN LATERAL connector._pairs(_spec_values.spec -> k.key) AS e
    WHERE k.type = 'NESTED'
$fn$;
COMMENT ON FUNCTION connector._spec_values(jsonb) IS 'Every key of a spec with its value.';
REVOKE ALL ON FUNCTION connector._spec_values(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._nearest_key(parent text, leaf text)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._nearest_key(parent, leaf)
--   The known key that an unknown one most likely means: fewest letters apart, or begun with it; the same block first.
-- Returns: NULL where the nearest is so far that naming it would mislead.
    SELECT n.key
    FROM (
        SELECT k.key, k.ordinality, s.parent <> _nearest_key.parent AS elsewhere,
            connector._edit_distance(lower(_nearest_key.leaf), s.leaf) AS distance,
            length(_nearest_key.leaf) > 3 AND starts_with(s.leaf, lower(_nearest_key.leaf)) AS longer
        FROM connector._spec_keys() WITH ORDINALITY AS k
        CROSS JOIN LATERAL (SELECT split_part(k.key, '.', 1 + strpos(k.key, '.')::boolean::integer) AS leaf,
            CASE WHEN k.key LIKE '%.%' THEN split_part(k.key, '.', 1) ELSE '' END AS parent) AS s
    ) AS n
    WHERE n.distance <= greatest(2, length(_nearest_key.leaf) / 2) OR n.longer
    ORDER BY n.distance, n.elsewhere, n.ordinality
    LIMIT 1
$fn$;
COMMENT ON FUNCTION connector._nearest_key(text, text) IS 'The known key nearest to an unknown one, or NULL.';
REVOKE ALL ON FUNCTION connector._nearest_key(text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._check_unknown(spec jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_unknown(spec)
--   A warning for every key that nothing reads. Keys tls.*_file are errors of connector._check_tls instead.
-- The first 20 get the nearest known key as their hint: a document of thousands of odd keys must not cost minutes.
    SELECT 'WARN', 'spec.' || u.shown, 'unknown key, nothing reads it',
        coalesce('Did you mean ' || CASE WHEN u.rank <= 20 THEN connector._nearest_key(u.parent, u.leaf) END || '?',
            'Remove it, or look for the right one: SELECT key, meaning FROM connector.describe();')
    FROM (
        SELECT v.parent, v.leaf, row_number() OVER (ORDER BY v.parent, v.leaf) AS rank,
            CASE v.parent WHEN '' THEN '' ELSE v.parent || '.' END || btrim(connector._shown(v.leaf), '"') AS shown
        FROM connector._spec_values(_check_unknown.spec) AS v
        WHERE NOT EXISTS (SELECT FROM connector._spec_keys() AS k
            WHERE k.key = CASE v.parent WHEN '' THEN '' ELSE v.parent || '.' END || v.leaf AND (v.parent <> '' OR k.key NOT LIKE '%.%'))
        AND NOT (v.parent = 'tls' AND v.leaf LIKE '%\_file')
    ) AS u
$fn$;
COMMENT ON FUNCTION connector._check_unknown(jsonb) IS 'Warnings for keys that nothing reads.';
REVOKE ALL ON FUNCTION connector._check_unknown(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._type_fault(type text, value jsonb, min_value bigint, max_value bigint, allowed text[])
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._type_fault(type, value, min_value, max_value, allowed)
--   What the value of a key must be, where it is something else; NULL where it is right. CASE keeps the cast of a number
--   behind the proof that it is one.
    SELECT CASE
        WHEN t.kind = 'null' THEN 'something other than null'
        WHEN _type_fault.type = 'LONG' THEN CASE
            WHEN trunc(t.number) = t.number AND t.number BETWEEN _type_fault.min_value AND _type_fault.max_value THEN NULL
            WHEN t.kind = 'string' AND t.word = ANY (_type_fault.allowed) THEN NULL
            ELSE format('a whole number from %s to %s', _type_fault.min_value, _type_fault.max_value)
                || coalesce(' or ' || array_to_string(_type_fault.allowed, ' or '), '')
        END
        WHEN _type_fault.type = 'STRING' THEN CASE
            WHEN t.kind <> 'string' THEN 'text in quotes'
            WHEN btrim(t.word, E' \t\r\n') = '' THEN 'more than blanks'
            WHEN _type_fault.allowed IS NOT NULL AND t.word <> ALL (_type_fault.allowed) THEN
                CASE WHEN cardinality(_type_fault.allowed) > 2 THEN 'one of ' ELSE '' END
                || regexp_replace(array_to_string(_type_fault.allowed, ', '), ', ([^,]*)$', ' or \1')
        END
        WHEN _type_fault.type = 'BOOLEAN' AND t.kind <> 'boolean' THEN 'true or false'
        WHEN _type_fault.type = 'LIST' AND t.kind <> 'array' THEN 'a list of words'
        WHEN _type_fault.type IN ('MAP', 'NESTED') AND t.kind <> 'object' THEN 'an object'
    END
    FROM (SELECT jsonb_typeof(_type_fault.value) AS kind, _type_fault.value #>> '{}' AS word,
        CASE jsonb_typeof(_type_fault.value) WHEN 'number' THEN _type_fault.value::numeric END AS number) AS t
$fn$;
COMMENT ON FUNCTION connector._type_fault(text, jsonb, bigint, bigint, text[]) IS 'What a key''s value must be, where it is something else.';
REVOKE ALL ON FUNCTION connector._type_fault(text, jsonb, bigint, bigint, text[]) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._check_known(spec jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_known(spec)
--   Missing keys, and values whose type, range or word the key table refuses. What an *_env key holds is never shown:
--   it may be the credential itself, put there by mistake.
    SELECT 'ERROR', 'spec.' || k.key, k.key || ' is required', k.meaning || '.'
    FROM connector._spec_keys() AS k
    WHERE k.required AND NOT _check_known.spec ? k.key
    UNION ALL
    SELECT 'ERROR', 'spec.' || k.key,
        format('%s must be %s', k.key, f.fault)
        || CASE WHEN k.key LIKE '%\_env' OR f.fault = 'more than blanks' THEN '' ELSE ', not ' || connector._shown_json(v.value) END,
        CASE
            WHEN jsonb_typeof(v.value) = 'null' THEN format('Leave %s out for its default.', k.key)
            WHEN k.type = 'LONG' AND jsonb_typeof(v.value) = 'string' THEN 'Write a number, without quotes.'
            WHEN f.fault = 'more than blanks' THEN k.meaning || '.'
            ELSE format('Use %s.', f.fault)
        END
    FROM connector._spec_values(_check_known.spec) AS v
    JOIN connector._spec_keys() AS k ON k.key = CASE v.parent WHEN '' THEN '' ELSE v.parent || '.' END || v.leaf
        AND (v.parent <> '' OR k.key NOT LIKE '%.%')
    CROSS JOIN LATERAL (SELECT connector._type_fault(k.type, v.value, k.min_value, k.max_value, k.allowed) AS fault) AS f
    WHERE f.fault IS NOT NULL
$fn$;
COMMENT ON FUNCTION connector._check_known(jsonb) IS 'Findings about missing keys and values of the wrong type, range or word.';
REVOKE ALL ON FUNCTION connector._check_known(jsonb) FROM PUBLIC;
