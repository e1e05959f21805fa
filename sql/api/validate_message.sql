-- Rules of what a message becomes: columns, their names and types, what is left out, and how rows are written.

CREATE OR REPLACE FUNCTION connector._taken_columns()
RETURNS TABLE (name text, why text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._taken_columns()
--   The column names that no field may be renamed to, and whose they are. A test compares them with package sql/table.
    VALUES ('id', 'a system column'), ('_row_hash', 'a system column'), ('_ingested_at', 'a system column'), ('_source', 'a system column'),
        ('_run_id', 'a system column'), ('_mapping_version', 'a system column'), ('tenant_id', 'a system column'),
        ('xmin', 'a column of PostgreSQL'), ('xmax', 'a column of PostgreSQL'), ('cmin', 'a column of PostgreSQL'), ('cmax', 'a column of PostgreSQL'),
        ('ctid', 'a column of PostgreSQL'), ('tableoid', 'a column of PostgreSQL'),
        ('_topic', 'a transport column'), ('_partition', 'a transport column'), ('_offset', 'a transport column'), ('_timestamp', 'a transport column'),
        ('_key', 'a transport column'), ('_key_bytes', 'a transport column'), ('_headers', 'a transport column'), ('_tombstone', 'a transport column')
$fn$;
COMMENT ON FUNCTION connector._taken_columns() IS 'Column names that no field may be renamed to.';
REVOKE ALL ON FUNCTION connector._taken_columns() FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._check_lists(spec jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_lists(spec)
--   The items of include, exclude and only: words, each once, those of include out of the key table's.
    SELECT 'ERROR', 'spec.' || k.key, format('%s item %s must be %s, not %s', k.key, i.ordinal, f.fault, connector._shown_json(i.value)),
        coalesce('Choose from ' || array_to_string(k.allowed, ', ') || '.', 'Write the names of message fields: ["a", "b"].')
    FROM connector._spec_keys() AS k
    CROSS JOIN LATERAL connector._items(_check_lists.spec -> k.key) AS i
    CROSS JOIN LATERAL (SELECT connector._type_fault('STRING', i.value, NULL, NULL, k.allowed) AS fault) AS f
    WHERE k.type = 'LIST' AND f.fault IS NOT NULL
    UNION ALL
    SELECT 'ERROR', 'spec.' || k.key, format('%s names %s more than once', k.key, connector._shown(i.value #>> '{}')), 'Name it once.'
    FROM connector._spec_keys() AS k
    CROSS JOIN LATERAL connector._items(_check_lists.spec -> k.key) AS i
    WHERE k.type = 'LIST' AND jsonb_typeof(i.value) = 'string'
    GROUP BY k.key, i.value
    HAVING count(*) > 1
    UNION ALL
    SELECT 'ERROR', 'spec.only', 'exclude and only are both given', 'Keep one of the two.'
    WHERE _check_lists.spec ? 'exclude' AND _check_lists.spec ? 'only'
    UNION ALL
    SELECT 'ERROR', 'spec.only', 'only is empty, so no field would be landed', 'Name the fields, or remove it to land all of them.'
    WHERE _check_lists.spec -> 'only' = '[]'
$fn$;
COMMENT ON FUNCTION connector._check_lists(jsonb) IS 'Findings about include, exclude and only.';
REVOKE ALL ON FUNCTION connector._check_lists(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._check_rename(spec jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_rename(spec)
--   A field gets one column of its own, with a name that nobody else has. Names are compared byte for byte, as columns are.
-- A NUL needs no rule here: jsonb holds none, the cast of the document refuses it.
    SELECT 'ERROR', 'spec.rename', format('rename of %s must be to a column name, not %s', connector._shown(r.key),
            CASE jsonb_typeof(r.value) WHEN 'string' THEN 'an empty one' ELSE connector._shown_json(r.value) END), 'Write {"field": "column"}.'
    FROM connector._pairs(_check_rename.spec -> 'rename') AS r
    WHERE jsonb_typeof(r.value) <> 'string' OR r.value = '""'
    UNION ALL
    SELECT 'ERROR', 'spec.rename', 'rename of a field without a name', 'A message field with an empty name is a dead letter; remove the entry.'
    WHERE jsonb_typeof(_check_rename.spec -> 'rename') = 'object' AND _check_rename.spec -> 'rename' ? ''
    UNION ALL
    SELECT 'ERROR', 'spec.rename', format('rename of %s to %s, which is %s', connector._shown(r.key), connector._shown(t.name), t.why), 'Choose another column name.'
    FROM connector._pairs(_check_rename.spec -> 'rename') AS r
    JOIN connector._taken_columns() AS t ON to_jsonb(t.name) = r.value
    UNION ALL
    SELECT 'ERROR', 'spec.rename', format('rename of %s to the same column %s', string_agg(connector._shown(r.key), ' and ' ORDER BY r.key),
            connector._shown(r.value #>> '{}')),
        'Give each field a column of its own.'
    FROM connector._pairs(_check_rename.spec -> 'rename') AS r
    WHERE jsonb_typeof(r.value) = 'string'
    GROUP BY r.value
    HAVING count(*) > 1
    UNION ALL
    SELECT 'WARN', 'spec.rename', format('rename of %s is not read: the field is not landed', connector._shown(r.key)), 'Remove the entry, or land the field.'
    FROM connector._pairs(_check_rename.spec -> 'rename') AS r
    WHERE (jsonb_typeof(_check_rename.spec -> 'exclude') = 'array' AND _check_rename.spec -> 'exclude' ? r.key)
        OR (jsonb_typeof(_check_rename.spec -> 'only') = 'array' AND NOT _check_rename.spec -> 'only' ? r.key)
$fn$;
COMMENT ON FUNCTION connector._check_rename(jsonb) IS 'Findings about rename.';
REVOKE ALL ON FUNCTION connector._check_rename(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._check_types(spec jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_types(spec)
--   A declared type is one of the key table's words, or numeric(p,s) within PostgreSQL's limits: nothing else ever
--   reaches a CREATE or ALTER TABLE.
    SELECT 'ERROR', 'spec.types', format('type of %s must be a column type that is known, not %s', connector._shown(t.key), connector._shown_json(t.value)),
        format('Choose from %s, numeric(p,s).', array_to_string(k.allowed, ', '))
    FROM connector._spec_keys() AS k
    CROSS JOIN LATERAL connector._pairs(_check_types.spec -> k.key) AS t
    CROSS JOIN LATERAL (SELECT regexp_match(t.value #>> '{}', '^numeric\(([1-9]\d{0,3}), ?(0|[1-9]\d{0,3})\)$') AS part) AS p
    WHERE k.key = 'types' AND NOT (
        jsonb_typeof(t.value) = 'string'
        AND (t.value #>> '{}' = ANY (k.allowed)
            OR coalesce(p.part[1]::integer <= 1000 AND p.part[2]::integer <= p.part[1]::integer, false)))
    UNION ALL
    SELECT 'ERROR', 'spec.types', 'type of a field without a name', 'A message field with an empty name is a dead letter; remove the entry.'
    WHERE jsonb_typeof(_check_types.spec -> 'types') = 'object' AND _check_types.spec -> 'types' ? ''
$fn$;
COMMENT ON FUNCTION connector._check_types(jsonb) IS 'Findings about declared column types.';
REVOKE ALL ON FUNCTION connector._check_types(jsonb) FROM PUBLIC;
