-- Deleting a connector erases what it made, in the same transaction. The ledger, the log and the audit keep their rows.

CREATE OR REPLACE FUNCTION connector._manifest_erase()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._manifest_erase()
--   AFTER DELETE: the table, the positions, the open dead letters and the schedule go with the row; active runs end.
-- Errors:  2BP01 something depends on the table: nothing is deleted.
-- Locks:   endpoint, cursor (in partition order), table, run: the order of a chunk, which is waited for.
-- Touches: connector._endpoint, _cursor, _lag, _column, _dlq (delete), _run (update), _log, _audit (insert), the queue.
DECLARE
    v_held    connector._endpoint;
    v_dropped boolean := false;
    v_runs    uuid[];
    v_letters bigint;
BEGIN
    SELECT e.* INTO v_held FROM connector._endpoint AS e WHERE e.connector_id = OLD.connector_id FOR UPDATE;
    PERFORM FROM connector._cursor AS c WHERE c.connector_id = OLD.connector_id ORDER BY c.partition FOR UPDATE;
    PERFORM connector._revoke_scopes(v_held);
    IF v_held.table_made THEN
        v_dropped := connector._drop_table(OLD.name, v_held.table_name);
    END IF;
    v_runs := connector._end_deleted(OLD.connector_id, OLD.name);
    DELETE FROM connector._cursor AS c WHERE c.connector_id = OLD.connector_id;
    DELETE FROM connector._lag AS l WHERE l.connector_id = OLD.connector_id;
    DELETE FROM connector._column AS c WHERE c.connector_id = OLD.connector_id;
    DELETE FROM connector._dlq AS d WHERE d.connector_id = OLD.connector_id AND d.status = 'open';
    GET DIAGNOSTICS v_letters = ROW_COUNT;
    DELETE FROM connector._endpoint AS e WHERE e.connector_id = OLD.connector_id;
    PERFORM connector._audit('drop', OLD.name, OLD.tenant_id, jsonb_build_object(
        'connector_id', OLD.connector_id, 'table', v_held.table_name, 'table_dropped', v_dropped,
        'runs_ended', to_jsonb(v_runs), 'dead_letters', v_letters, 'spec', OLD.spec));
    RETURN NULL;
END
$fn$;
COMMENT ON FUNCTION connector._manifest_erase() IS 'Internal: erases what a deleted connector made.';
REVOKE ALL ON FUNCTION connector._manifest_erase() FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._end_deleted(connector_id uuid, name text)
RETURNS uuid[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._end_deleted(connector_id, name)
--   Ends the active runs of a connector that is being deleted, naming the deletion, and tells the sidecars. Nothing of
--   them lands afterwards: their positions are gone, and a chunk cannot commit without moving one.
-- Returns: the runs that were ended.
-- Touches: connector._run (update), connector._log (insert), the queue.
DECLARE
    v_runs uuid[];
    v_run  uuid;
BEGIN
    v_runs := ARRAY(
        SELECT r.run_id
        FROM connector._run AS r
        WHERE r.connector_id = _end_deleted.connector_id AND r.status IN ('Scheduled', 'Running')
        ORDER BY r.scheduled_at, r.run_id
        FOR UPDATE);
    FOREACH v_run IN ARRAY v_runs LOOP
        PERFORM connector._conclude(v_run, 'Cancelled', 'deleted', format('connector %s was deleted by %s', connector._shown(name), session_user));
        PERFORM connector._say(v_run, 'WARN', format('connector %s was deleted by %s: this run ends', connector._shown(name), session_user));
    END LOOP;
    IF cardinality(v_runs) > 0 THEN
        PERFORM connector._cancel_jobs(v_runs);
        PERFORM pg_notify('highwater', '');
    END IF;
    RETURN v_runs;
END
$fn$;
COMMENT ON FUNCTION connector._end_deleted(uuid, text) IS 'Internal: ends the active runs of a connector that is being deleted.';
REVOKE ALL ON FUNCTION connector._end_deleted(uuid, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._manifest_truncate()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._manifest_truncate()
--   BEFORE TRUNCATE: refused, because it fires no row trigger and so would leave tables and positions behind.
BEGIN
    RAISE EXCEPTION 'connector.manifest cannot be truncated'
        USING ERRCODE = '0A000', HINT = 'Delete the rows instead, which erases what the connectors made: DELETE FROM connector.manifest;';
END
$fn$;
COMMENT ON FUNCTION connector._manifest_truncate() IS 'Internal: refuses TRUNCATE of the manifest.';
REVOKE ALL ON FUNCTION connector._manifest_truncate() FROM PUBLIC;

CREATE OR REPLACE TRIGGER manifest_erase
AFTER DELETE ON connector.manifest
FOR EACH ROW EXECUTE FUNCTION connector._manifest_erase();
COMMENT ON TRIGGER manifest_erase ON connector.manifest IS 'Erases what a deleted connector made.';

CREATE OR REPLACE TRIGGER manifest_truncate
BEFORE TRUNCATE ON connector.manifest
FOR EACH STATEMENT EXECUTE FUNCTION connector._manifest_truncate();
COMMENT ON TRIGGER manifest_truncate ON connector.manifest IS 'Refuses TRUNCATE.';
