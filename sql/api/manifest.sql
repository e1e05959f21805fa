-- What happens when a connector is declared or changed: validated first, then canonical, then stored.

CREATE OR REPLACE FUNCTION connector._refuse(name text, findings jsonb)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._refuse(name, findings)
--   Raises one error for all findings where one of them is an error; does nothing otherwise. findings is a JSON array of
--   rows as connector.validate returns them.
-- Errors:  22023; message: how many, DETAIL: one line a finding, HINT: what to do about each. At most 100 of either.
DECLARE
    v_errors   bigint;
    v_warnings bigint;
    v_detail   text;
    v_hint     text;
BEGIN
    SELECT count(*) FILTER (WHERE f.severity = 'ERROR'), count(*) FILTER (WHERE f.severity = 'WARN'),
        string_agg(format('%s %s: %s', f.severity, f.path, f.message), E'\n' ORDER BY f.n) FILTER (WHERE f.n <= 100),
        string_agg(format('%s: %s', f.path, f.hint), E'\n' ORDER BY f.n) FILTER (WHERE f.n <= 100)
    INTO v_errors, v_warnings, v_detail, v_hint
    FROM (SELECT e.n, e.value ->> 'severity' AS severity, e.value ->> 'path' AS path, e.value ->> 'message' AS message, e.value ->> 'hint' AS hint
        FROM jsonb_array_elements(findings) WITH ORDINALITY AS e (value, n)) AS f;
    IF v_errors > 0 THEN
        RAISE EXCEPTION 'connector % is refused: %', connector._shown(coalesce(name, '')),
            v_errors || CASE v_errors WHEN 1 THEN ' error' ELSE ' errors' END
                || CASE v_warnings WHEN 0 THEN '' WHEN 1 THEN ' and 1 warning' ELSE format(' and %s warnings', v_warnings) END
            USING ERRCODE = '22023',
                  DETAIL  = v_detail || CASE WHEN v_errors + v_warnings > 100 THEN format(E'\nand %s more', v_errors + v_warnings - 100) ELSE '' END,
                  HINT    = v_hint || E'\nEvery key: SELECT * FROM connector.describe();';
    END IF;
END
$fn$;
COMMENT ON FUNCTION connector._refuse(text, jsonb) IS 'Internal: raise one error for all findings about a manifest.';
REVOKE ALL ON FUNCTION connector._refuse(text, jsonb) FROM PUBLIC;
-- connector.apply runs with the operator's own rights and calls this; with the owner's it may quote, and it only raises.
GRANT EXECUTE ON FUNCTION connector._refuse(text, jsonb) TO highwater_operator;

CREATE OR REPLACE FUNCTION connector._findings(declared connector.manifest)
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._findings(declared)
--   What connector.validate says of a manifest row, as a JSON array, errors first.
    SELECT coalesce(jsonb_agg(to_jsonb(f) - 'ordinality' ORDER BY f.severity, f.ordinality), '[]')
    FROM connector._check_document(jsonb_build_object(
        'apiVersion', 'connectors.highwater.io/v1',
        'kind', 'Connector',
        'metadata', jsonb_build_object('name', (_findings.declared).name, 'connector_type', (_findings.declared).connector_type,
            'scopes', (_findings.declared).scopes),
        'spec', (_findings.declared).spec)) WITH ORDINALITY AS f
$fn$;
COMMENT ON FUNCTION connector._findings(connector.manifest) IS 'Internal: the findings about a manifest row.';
REVOKE ALL ON FUNCTION connector._findings(connector.manifest) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._canonical(spec jsonb)
RETURNS jsonb
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._canonical(spec)
--   A valid spec as it is stored: presets expanded, whole numbers without a fraction (2000.0 becomes 2000), types without
--   blanks after a comma. Two documents that mean the same are stored alike, so that sending one again changes nothing.
    SELECT jsonb_object_agg(e.key, CASE
        WHEN k.type = 'LONG' AND jsonb_typeof(e.value) = 'number' THEN to_jsonb(trunc(e.value::numeric))
        WHEN k.key = 'types' THEN (SELECT coalesce(jsonb_object_agg(t.key, replace(t.value #>> '{}', ', ', ',')), '{}') FROM connector._pairs(e.value) AS t)
        ELSE e.value
    END)
    FROM connector._pairs(connector._expand_preset(_canonical.spec)) AS e
    LEFT JOIN connector._spec_keys() AS k ON k.key = e.key
$fn$;
COMMENT ON FUNCTION connector._canonical(jsonb) IS 'Internal: a valid spec in the form in which it is stored.';
REVOKE ALL ON FUNCTION connector._canonical(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._fixed_changes(old_spec jsonb, new_spec jsonb)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._fixed_changes(old_spec, new_spec)
--   The keys that two canonical specs differ in and that are fixed while positions exist, comma-separated. A default
--   counts as written out, and a list as a set.
-- Returns: NULL where there are none.
    SELECT string_agg(k.key, ', ' ORDER BY k.ordinality)
    FROM connector._spec_keys() WITH ORDINALITY AS k
    CROSS JOIN LATERAL (SELECT CASE k.type WHEN 'LIST' THEN k.default_value::jsonb ELSE to_jsonb(k.default_value) END AS value) AS d
    CROSS JOIN LATERAL (SELECT coalesce(_fixed_changes.old_spec -> k.key, d.value) AS was, coalesce(_fixed_changes.new_spec -> k.key, d.value) AS will) AS v
    WHERE k.fixed AND CASE k.type WHEN 'LIST' THEN NOT (v.was <@ v.will AND v.will <@ v.was) ELSE v.was IS DISTINCT FROM v.will END
$fn$;
COMMENT ON FUNCTION connector._fixed_changes(jsonb, jsonb) IS 'Internal: the fixed keys that two specs differ in.';
REVOKE ALL ON FUNCTION connector._fixed_changes(jsonb, jsonb) FROM PUBLIC;
