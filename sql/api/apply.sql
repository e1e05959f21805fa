-- Whole documents in, stored configurations out, connectors gone: the three gestures beside plain INSERT, UPDATE, DELETE.

CREATE OR REPLACE FUNCTION connector.apply(document jsonb)
RETURNS TABLE (name text, connector_id uuid, endpoints_applied integer)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.apply(document)
--   Declares a connector by a whole document, or changes the one of that name. Runs with the caller's own rights, so the
--   manifest's grants and row security decide.
-- Returns: one row; endpoints_applied is 1, a connector has one endpoint.
-- Errors:  22023 with every finding, as INSERT; see connector._manifest_check for changes that are refused.
-- Touches: connector.manifest (upsert).
DECLARE
    v_findings jsonb;
    v_finding  record;
BEGIN
    IF jsonb_typeof(document) = 'object' AND NOT document ?| '{apiVersion,metadata,spec}' THEN
        -- A bare spec has no name to store it under; say so instead of judging it as one.
        document := jsonb_build_object('spec', document);
    END IF;
    v_findings := (
        SELECT coalesce(jsonb_agg(to_jsonb(f) - 'ordinality' ORDER BY f.ordinality), '[]')
        FROM connector.validate(document) WITH ORDINALITY AS f);
    PERFORM connector._refuse(document #>> '{metadata,name}', v_findings);
    -- What the row cannot show to its triggers, which raise all other warnings.
    FOR v_finding IN
        SELECT f.path, f.message, f.hint
        FROM jsonb_to_recordset(v_findings) AS f (path text, message text, hint text)
        WHERE f.path <> 'metadata.scopes' AND f.path !~ '^spec\.'
    LOOP
        RAISE WARNING '%: %', v_finding.path, v_finding.message USING HINT = v_finding.hint;
    END LOOP;
    RETURN QUERY
        INSERT INTO connector.manifest AS m (name, connector_type, scopes, spec)
        VALUES (document #>> '{metadata,name}',
            coalesce(document #>> '{metadata,connector_type}', 'kafka'),
            ARRAY(SELECT jsonb_array_elements_text(coalesce(document #> '{metadata,scopes}', '[]'))),
            document -> 'spec')
        ON CONFLICT ON CONSTRAINT manifest_pkey DO UPDATE
        SET connector_type = excluded.connector_type,
            scopes = excluded.scopes,
            spec = excluded.spec
        RETURNING m.name, m.connector_id, 1;
END
$fn$;
COMMENT ON FUNCTION connector.apply(jsonb) IS 'Declare a connector by a whole document (apiVersion, kind, metadata, spec), or change the one of that name.';
REVOKE ALL ON FUNCTION connector.apply(jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.apply(jsonb) TO highwater_operator;

CREATE OR REPLACE FUNCTION connector.get(name text)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.get(name)
--   The stored configuration of a connector: its spec, presets expanded, with no default filled in.
-- Errors:  P0002 no such connector.
-- Touches: connector.manifest (read; only the session's tenant).
BEGIN
    RETURN (connector._find(name)).spec;
END
$fn$;
COMMENT ON FUNCTION connector.get(text) IS 'The stored configuration of a connector, presets expanded.';
REVOKE ALL ON FUNCTION connector.get(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.get(text) TO highwater_operator, highwater_reader;

CREATE OR REPLACE FUNCTION connector.drop(name text, keep_table boolean DEFAULT false)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.drop(name, keep_table)
--   DELETE of the manifest row, and so of the table, the positions and the open dead letters. With keep_table the table
--   keeps its rows and belongs to no connector any more.
-- Errors:  P0002 no such connector; 2BP01 something depends on the table.
-- Locks:   manifest, then as _manifest_erase.
-- Touches: connector.manifest (delete), connector._endpoint (update).
DECLARE
    v_id uuid := (connector._find(name)).connector_id;
BEGIN
    PERFORM FROM connector.manifest AS m WHERE m.connector_id = v_id FOR UPDATE;
    IF keep_table THEN
        UPDATE connector._endpoint AS e SET table_made = false WHERE e.connector_id = v_id;
    END IF;
    DELETE FROM connector.manifest AS m WHERE m.connector_id = v_id;
END
$fn$;
COMMENT ON FUNCTION connector.drop(text, boolean) IS 'Delete a connector with its table, positions and open dead letters; keep_table keeps the table and its rows.';
REVOKE ALL ON FUNCTION connector.drop(text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.drop(text, boolean) TO highwater_operator;
