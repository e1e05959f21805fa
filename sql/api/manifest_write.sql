-- The triggers of connector.manifest on INSERT and UPDATE. The one before the row sees only the row itself, so that a row
-- of another tenant, which row security refuses after it, learns nothing; what looks at other connectors comes after.

CREATE OR REPLACE FUNCTION connector._manifest_check()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._manifest_check()
--   BEFORE INSERT OR UPDATE: fills in what the row leaves out, refuses what is wrong in it, makes the spec canonical.
-- Errors:  22023 findings; 0A000 name, connector_id or tenant_id would change; see _hold_fixed.
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF (NEW.name, NEW.connector_id, NEW.tenant_id) IS DISTINCT FROM (OLD.name, OLD.connector_id, OLD.tenant_id) THEN
            RAISE EXCEPTION 'name, connector_id and tenant_id of connector % cannot change', connector._shown(OLD.name)
                USING ERRCODE = '0A000',
                      HINT = 'Declare another connector under the new name, then delete this one.';
        END IF;
        NEW.created_at := OLD.created_at;
    ELSE
        -- Always a new identity: ledger rows of a deleted connector must not become this one's.
        NEW.connector_id := gen_random_uuid();
        NEW.tenant_id := coalesce(NEW.tenant_id, connector.current_tenant(), 1);
        NEW.created_at := now();
    END IF;
    NEW.connector_type := coalesce(NEW.connector_type, 'kafka');
    NEW.scopes := coalesce(NEW.scopes, '{}');
    NEW.updated_at := now();
    PERFORM connector._refuse(NEW.name, connector._findings(NEW));
    NEW.spec := connector._canonical(NEW.spec);
    IF TG_OP = 'UPDATE' THEN
        PERFORM connector._hold_fixed(OLD.connector_id, OLD.name, connector._fixed_changes(OLD.spec, NEW.spec));
    END IF;
    RETURN NEW;
END
$fn$;
COMMENT ON FUNCTION connector._manifest_check() IS 'Internal: validates a manifest row before it is stored.';
REVOKE ALL ON FUNCTION connector._manifest_check() FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._hold_fixed(connector_id uuid, name text, changes text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._hold_fixed(connector_id, name, changes)
--   Refuses a change of keys that the stored positions and the rows rest on. Holds the endpoint until the transaction
--   ends, so that no run is claimed under the old spec in between; a Running one may have no positions yet.
-- Errors:  55000 there are positions; 55006 a run is active.
-- Locks:   endpoint.
DECLARE
    v_run uuid;
BEGIN
    IF changes IS NULL THEN
        RETURN;
    END IF;
    PERFORM FROM connector._endpoint AS e WHERE e.connector_id = _hold_fixed.connector_id FOR UPDATE;
    IF EXISTS (SELECT FROM connector._cursor AS c WHERE c.connector_id = _hold_fixed.connector_id) THEN
        RAISE EXCEPTION 'connector % has stored positions, so these keys cannot change: %', connector._shown(name), changes
            USING ERRCODE = '55000',
                  HINT = format('Forget the positions first: SELECT connector.reset_cursor(%L); the next run then reads from start_position.', name);
    END IF;
    SELECT r.run_id INTO v_run FROM connector._run AS r WHERE r.connector_id = _hold_fixed.connector_id AND r.status = 'Running';
    IF FOUND THEN
        RAISE EXCEPTION 'connector % is busy: run % is active, so these keys cannot change: %', connector._shown(name), v_run, changes
            USING ERRCODE = '55006',
                  HINT = format('Wait for it with: SELECT * FROM connector.wait(%L); or stop it with: SELECT connector.cancel(%L);', v_run, v_run);
    END IF;
END
$fn$;
COMMENT ON FUNCTION connector._hold_fixed(uuid, text, text) IS 'Internal: refuses changes that stored positions forbid.';
REVOKE ALL ON FUNCTION connector._hold_fixed(uuid, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._manifest_keep()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._manifest_keep()
--   AFTER INSERT OR UPDATE: makes or follows the connector's endpoint, then raises the warnings. Here and not before the
--   row, because an upsert fires the triggers of both events before it, and those of one event after it.
-- Errors:  22023 the table's name is taken.
-- Touches: connector._endpoint (insert, update), connector._column (delete), connector._audit.
DECLARE
    v_finding record;
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM connector._take_table(NEW.name, 't_' || (NEW.spec ->> 'name'), NEW.tenant_id, NEW.connector_id);
        INSERT INTO connector._endpoint (connector_id, connector, tenant_id, table_name)
        VALUES (NEW.connector_id, NEW.name, NEW.tenant_id, 't_' || (NEW.spec ->> 'name'))
        ON CONFLICT (table_name) DO NOTHING;
        IF NOT FOUND THEN
            -- Declared by somebody else since the check: it is visible now and refuses us.
            PERFORM connector._take_table(NEW.name, 't_' || (NEW.spec ->> 'name'), NEW.tenant_id, NEW.connector_id);
        END IF;
    ELSIF NEW.spec IS DISTINCT FROM OLD.spec THEN
        UPDATE connector._endpoint AS e SET mapping_version = e.mapping_version + 1 WHERE e.connector_id = NEW.connector_id;
        IF NEW.spec ->> 'topic' <> OLD.spec ->> 'topic' THEN
            UPDATE connector._endpoint AS e
            SET cluster_id = NULL, topic = NULL, topic_id = NULL, poison_chunks = 0
            WHERE e.connector_id = NEW.connector_id;
        END IF;
        IF NEW.spec ->> 'name' <> OLD.spec ->> 'name' THEN
            PERFORM connector._take_table(NEW.name, 't_' || (NEW.spec ->> 'name'), NEW.tenant_id, NEW.connector_id);
            PERFORM connector._detach_table(NEW.name, NEW.connector_id, NEW.tenant_id, 't_' || (NEW.spec ->> 'name'));
        END IF;
    END IF;

    FOR v_finding IN
        SELECT f.path, f.message, f.hint
        FROM jsonb_to_recordset(connector._findings(NEW)) AS f (severity text, path text, message text, hint text)
        LIMIT 100
    LOOP
        RAISE WARNING '%: %', v_finding.path, v_finding.message USING HINT = v_finding.hint;
    END LOOP;
    RETURN NULL;
END
$fn$;
COMMENT ON FUNCTION connector._manifest_keep() IS 'Internal: keeps the endpoint of a manifest row and raises its warnings.';
REVOKE ALL ON FUNCTION connector._manifest_keep() FROM PUBLIC;

CREATE OR REPLACE TRIGGER manifest_check
BEFORE INSERT OR UPDATE ON connector.manifest
FOR EACH ROW EXECUTE FUNCTION connector._manifest_check();
COMMENT ON TRIGGER manifest_check ON connector.manifest IS 'Validates a manifest and makes it canonical.';

CREATE OR REPLACE TRIGGER manifest_keep
AFTER INSERT OR UPDATE ON connector.manifest
FOR EACH ROW EXECUTE FUNCTION connector._manifest_keep();
COMMENT ON TRIGGER manifest_keep ON connector.manifest IS 'Keeps the connector''s endpoint and raises the warnings of a stored manifest.';

-- Operators write the manifest directly, under row security.
GRANT SELECT, INSERT, UPDATE, DELETE ON connector.manifest TO highwater_operator;
GRANT SELECT ON connector.manifest TO highwater_reader;
