-- connector.validate, and the one list of checks that it shares with the manifest's triggers.

CREATE OR REPLACE FUNCTION connector._check_spec(spec jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_spec(spec)
--   Every finding about a spec: errors first, each kind in the order of the key table. A preset that can be expanded is
--   judged by what it becomes, so that a stored spec has the same findings as the one that was sent.
-- Calls:   connector._check_preset, _check_env (before expansion), all other checks (after it).
DECLARE
    v_spec jsonb := spec;
BEGIN
    IF jsonb_typeof(spec) IS DISTINCT FROM 'object' THEN
        RETURN QUERY VALUES ('ERROR', 'spec', 'spec must be an object'::text, 'SELECT * FROM connector.describe(); lists its keys.'::text);
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM connector._check_preset(spec) AS p WHERE p.severity = 'ERROR')
        AND NOT EXISTS (SELECT FROM connector._check_known(spec) AS c JOIN connector._presets() AS p ON c.path = 'spec.' || p.input) THEN
        v_spec := connector._expand_preset(spec);
    END IF;
    RETURN QUERY
        SELECT f.severity, f.path, f.message, f.hint
        FROM (
            SELECT * FROM connector._check_preset(spec)
            UNION ALL SELECT * FROM connector._check_env(spec)
            UNION ALL SELECT * FROM connector._check_known(v_spec)
            UNION ALL SELECT * FROM connector._check_unknown(v_spec)
            UNION ALL SELECT * FROM connector._check_source(v_spec)
            UNION ALL SELECT * FROM connector._check_time(v_spec)
            UNION ALL SELECT * FROM connector._check_auth(v_spec)
            UNION ALL SELECT * FROM connector._check_tls(v_spec)
            UNION ALL SELECT * FROM connector._check_lists(v_spec)
            UNION ALL SELECT * FROM connector._check_rename(v_spec)
            UNION ALL SELECT * FROM connector._check_types(v_spec)
            UNION ALL SELECT * FROM connector._check_filter(v_spec)
            UNION ALL SELECT * FROM connector._check_together(v_spec)
        ) AS f
        LEFT JOIN connector._spec_keys() WITH ORDINALITY AS k ON f.path = 'spec.' || k.key
        ORDER BY f.severity, k.ordinality NULLS LAST, f.path, f.message;
END
$fn$;
COMMENT ON FUNCTION connector._check_spec(jsonb) IS 'Every finding about a spec.';
REVOKE ALL ON FUNCTION connector._check_spec(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._check_metadata(metadata jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_metadata(metadata)
--   Findings about name, connector_type and scopes, and keys beside them.
    SELECT f.severity, f.path, f.message, f.hint
    FROM (SELECT _check_metadata.metadata AS m, _check_metadata.metadata ->> 'name' AS name) AS s
    CROSS JOIN LATERAL (VALUES
        (1, 'ERROR', 'metadata.name', 'name is required', 'Give the connector a name such as acme-partners.', s.name IS NULL),
        (1, 'ERROR', 'metadata.name',
            'name must be lower-case letters, digits, dots, underscores and hyphens, beginning with a letter or digit, not '
                || connector._shown_json(s.m -> 'name'),
            'Use a name such as acme-partners.',
            s.name IS NOT NULL AND (jsonb_typeof(s.m -> 'name') <> 'string' OR s.name !~ '^[a-z0-9][a-z0-9._-]*$')),
        (1, 'ERROR', 'metadata.name', format('name is %s bytes long; the limit is 128', octet_length(s.name)), 'Shorten it.', octet_length(s.name) > 128),
        (2, 'ERROR', 'metadata.connector_type', format('connector type %s is not known', connector._shown_json(s.m -> 'connector_type')),
            'Only kafka is known.', s.m ? 'connector_type' AND (s.m -> 'connector_type') <> '"kafka"'),
        (3, 'ERROR', 'metadata.scopes', 'scopes must be a list of words, not ' || connector._shown_json(s.m -> 'scopes'),
            'Write ["billing"].', jsonb_typeof(s.m -> 'scopes') <> 'array'),
        (4, 'WARN', 'metadata.scopes', 'no scope is declared, so no role is given the table to read',
            'Declare who may read it, e.g. scopes {billing}, and map the scope to a role in connector.scope_roles.',
            NOT s.m ? 'scopes' OR s.m -> 'scopes' = '[]')
    ) AS f (ordinal, severity, path, message, hint, holds)
    WHERE f.holds
    UNION ALL
    SELECT 'ERROR', 'metadata.scopes', format('scopes item %s must be %s, not %s', i.ordinal, t.fault, connector._shown_json(i.value)), 'Write ["billing"].'
    FROM connector._items(_check_metadata.metadata -> 'scopes') AS i
    CROSS JOIN LATERAL (SELECT connector._type_fault('STRING', i.value, NULL, NULL, NULL) AS fault) AS t
    WHERE t.fault IS NOT NULL
    UNION ALL
    SELECT 'WARN', 'metadata.' || btrim(connector._shown(p.key), '"'), 'unknown key, nothing reads it', 'metadata has name, connector_type and scopes.'
    FROM connector._pairs(_check_metadata.metadata) AS p
    WHERE p.key NOT IN ('name', 'connector_type', 'scopes')
$fn$;
COMMENT ON FUNCTION connector._check_metadata(jsonb) IS 'Findings about a manifest''s name, type and scopes.';
REVOKE ALL ON FUNCTION connector._check_metadata(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._check_document(document jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_document(document)
--   Every finding about a whole document, its envelope included.
    SELECT 'ERROR', e.key, format('%s must be %s', e.key, e.value)
        || coalesce(', not ' || connector._shown_json(_check_document.document -> e.key), ''), format('Write "%s": "%s".', e.key, e.value)
    FROM (VALUES ('apiVersion', 'connectors.highwater.io/v1'), ('kind', 'Connector')) AS e (key, value)
    WHERE (_check_document.document -> e.key) IS DISTINCT FROM to_jsonb(e.value)
    UNION ALL
    SELECT 'ERROR', p.key, p.key || ' must be an object', 'A document has apiVersion, kind, metadata and spec.'
    FROM (VALUES ('metadata')) AS p (key)
    WHERE jsonb_typeof(_check_document.document -> p.key) IS DISTINCT FROM 'object'
    UNION ALL
    SELECT 'WARN', btrim(connector._shown(p.key), '"'), 'unknown key, nothing reads it', 'A document has apiVersion, kind, metadata and spec.'
    FROM connector._pairs(_check_document.document) AS p
    WHERE p.key NOT IN ('apiVersion', 'kind', 'metadata', 'spec')
    UNION ALL
    SELECT * FROM connector._check_metadata(_check_document.document -> 'metadata')
    WHERE jsonb_typeof(_check_document.document -> 'metadata') = 'object'
    UNION ALL
    SELECT * FROM connector._check_spec(_check_document.document -> 'spec')
$fn$;
COMMENT ON FUNCTION connector._check_document(jsonb) IS 'Every finding about a whole document.';
REVOKE ALL ON FUNCTION connector._check_document(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector.validate(document jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.validate(document)
--   Says what INSERT INTO connector.manifest, or connector.apply, would say of a document, and writes nothing. Clashes
--   with what is already stored (a table that another connector writes) are found by INSERT alone.
-- Takes:   a whole document (it has a spec, metadata or apiVersion), or a bare spec.
-- Returns: one row a finding, errors first; no row for a document that is right in everything.
BEGIN
    IF jsonb_typeof(document) IS DISTINCT FROM 'object' THEN
        RETURN QUERY VALUES ('ERROR', 'document', 'a manifest must be a JSON object'::text,
            'Pass a whole document, or its spec alone.'::text);
    ELSIF document ?| '{apiVersion,metadata,spec}' THEN
        RETURN QUERY
            SELECT f.severity, f.path, f.message, f.hint
            FROM connector._check_document(document) WITH ORDINALITY AS f (severity, path, message, hint, n)
            ORDER BY f.severity, f.n;
    ELSE
        RETURN QUERY SELECT * FROM connector._check_spec(document);
    END IF;
END
$fn$;
COMMENT ON FUNCTION connector.validate(jsonb) IS 'Every mistake in a manifest, or in a bare spec, at once: severity ERROR or WARN, path, message, hint. Writes nothing.';
REVOKE ALL ON FUNCTION connector.validate(jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.validate(jsonb) TO highwater_operator, highwater_reader;
