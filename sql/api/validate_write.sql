-- Rules of the keys that go together, or not: filter, layout, format, read and write.

CREATE OR REPLACE FUNCTION connector._check_filter(spec jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_filter(spec)
--   filter.headers maps each header to a list of the values that pass; a list that nothing can pass is a mistake.
    SELECT 'ERROR', 'spec.filter.headers', format('filter.headers %s must be a list of words, not %s', connector._shown(h.key),
            CASE h.value WHEN '[]' THEN 'an empty one' ELSE connector._shown_json(h.value) END), 'Write {"type": ["order.created"]}.'
    FROM connector._pairs(_check_filter.spec #> '{filter,headers}') AS h
    WHERE jsonb_typeof(h.value) <> 'array' OR h.value = '[]'
    UNION ALL
    SELECT 'ERROR', 'spec.filter.headers', format('filter.headers %s item %s must be a word, not %s', connector._shown(h.key), i.ordinal,
            connector._shown_json(i.value)),
        'Header values are compared as text: write each in quotes.'
    FROM connector._pairs(_check_filter.spec #> '{filter,headers}') AS h
    CROSS JOIN LATERAL connector._items(h.value) AS i
    WHERE jsonb_typeof(i.value) <> 'string'
$fn$;
COMMENT ON FUNCTION connector._check_filter(jsonb) IS 'Findings about filter.';
REVOKE ALL ON FUNCTION connector._check_filter(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._check_together(spec jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_together(spec)
--   Keys that contradict each other are errors; a key that nothing reads beside another is a warning.
    SELECT f.severity, f.path, f.message, f.hint
    FROM (VALUES
        ('ERROR', 'spec.layout', 'layout: document does not go with format: raw, which keeps the whole value in one column', 'Remove layout, or use format: json.',
            _check_together.spec ->> 'layout' = 'document' AND _check_together.spec ->> 'format' = 'raw'),
        ('ERROR', 'spec.write', 'write: replace needs read: full', 'Set spec.read to full, or spec.write to append.',
            _check_together.spec ->> 'write' = 'replace' AND coalesce(_check_together.spec ->> 'read', 'catch_up') <> 'full'),
        ('WARN', 'spec.stall_timeout_ms', 'a run may be given up as stalled before poll_timeout_ms lets it ask what lies below the target',
            'Keep stall_timeout_ms well above poll_timeout_ms.',
            CASE WHEN jsonb_typeof(_check_together.spec -> 'poll_timeout_ms') = 'number' AND jsonb_typeof(_check_together.spec -> 'stall_timeout_ms') = 'number'
                THEN (_check_together.spec -> 'poll_timeout_ms')::numeric >= (_check_together.spec -> 'stall_timeout_ms')::numeric END)
    ) AS f (severity, path, message, hint, holds)
    WHERE f.holds
    UNION ALL
    SELECT 'WARN', 'spec.' || k.key, format('%s is not read with %s, which keeps the message in one column', k.key, w.setting),
        format('Remove it, or do not use %s.', w.setting)
    FROM (VALUES
        ('format: raw', _check_together.spec ->> 'format' = 'raw'),
        ('layout: document', _check_together.spec ->> 'layout' = 'document' AND _check_together.spec ->> 'format' IS DISTINCT FROM 'raw')
    ) AS w (setting, holds)
    CROSS JOIN unnest('{rename,exclude,only,types,schema,type_change}'::text[]) AS k (key)
    WHERE w.holds AND _check_together.spec ? k.key
$fn$;
COMMENT ON FUNCTION connector._check_together(jsonb) IS 'Findings about keys that contradict or silence each other.';
REVOKE ALL ON FUNCTION connector._check_together(jsonb) FROM PUBLIC;
