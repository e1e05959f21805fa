-- Moving positions by hand. Refused while a run is active; every gesture leaves a row in connector.audit.

CREATE OR REPLACE FUNCTION connector._audit(action text, connector text, tenant_id bigint, detail jsonb DEFAULT '{}')
RETURNS void
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._audit(action, connector, tenant_id, detail)
--   Records a gesture of the session's user, in its transaction.
-- Touches: connector._audit (insert).
INSERT INTO connector._audit (action, connector, tenant_id, detail)
VALUES (_audit.action, _audit.connector, _audit.tenant_id, coalesce(_audit.detail, '{}'))
$fn$;
COMMENT ON FUNCTION connector._audit(text, text, bigint, jsonb) IS 'Internal: record a gesture in the audit trail.';
REVOKE ALL ON FUNCTION connector._audit(text, text, bigint, jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._hold_idle(name text)
RETURNS connector._endpoint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._hold_idle(name)
--   Locks the endpoint of a connector that no run is working on, until the transaction ends: a run that is queued cannot be
--   claimed before that. Takes "name/default" too.
-- Errors:  P0002 no such connector; 55006 a run is active.
-- Locks:   endpoint.
DECLARE
    v_manifest connector.manifest := connector._find(regexp_replace(name, '/default$', ''));
    v_held     connector._endpoint;
    v_run      uuid;
BEGIN
    SELECT e.* INTO v_held FROM connector._endpoint AS e WHERE e.connector_id = v_manifest.connector_id FOR UPDATE;
    SELECT r.run_id INTO v_run FROM connector._run AS r WHERE r.connector_id = v_manifest.connector_id AND r.status = 'Running';
    IF FOUND THEN
        RAISE EXCEPTION 'connector "%" is busy: run % is active', v_manifest.name, v_run
            USING ERRCODE = '55006',
                  HINT    = format('Wait for it with: SELECT * FROM connector.wait(%L); or stop it with: SELECT connector.cancel(%L);', v_run, v_run);
    END IF;
    RETURN v_held;
END
$fn$;
COMMENT ON FUNCTION connector._hold_idle(text) IS 'Internal: lock the endpoint of a connector that no run is working on.';
REVOKE ALL ON FUNCTION connector._hold_idle(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector.reset_cursor(name text)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.reset_cursor(name)
--   Forgets every stored position of a connector, and with them which topic of which cluster they belonged to; its next run
--   starts at the manifest's start_position. The table keeps its rows; one that somebody dropped is made anew.
-- Returns: how many partitions were forgotten; 0 if nothing had been read.
-- Errors:  P0002 no such connector; 55006 a run is active.
-- Locks:   endpoint, cursor.
-- Touches: connector._endpoint (update), connector._cursor, connector._lag, connector._column (delete), connector._audit.
DECLARE
    v_held   connector._endpoint := connector._hold_idle(name);
    v_forgot jsonb;
    v_made   boolean;
BEGIN
    WITH forgotten AS (
        DELETE FROM connector._cursor AS c WHERE c.connector_id = v_held.connector_id RETURNING c.partition, c.next_offset)
    SELECT coalesce(jsonb_object_agg(f.partition::text, f.next_offset), '{}') INTO v_forgot FROM forgotten AS f;
    DELETE FROM connector._lag AS l WHERE l.connector_id = v_held.connector_id;
    UPDATE connector._endpoint AS e
    SET cluster_id = NULL,
        topic = NULL,
        topic_id = NULL,
        seek_to = NULL,
        poison_chunks = 0,
        table_made = e.table_made AND to_regclass(format('connector.%I', e.table_name)) IS NOT NULL
    WHERE e.connector_id = v_held.connector_id
    RETURNING e.table_made INTO v_made;
    IF NOT v_made THEN
        DELETE FROM connector._column AS h WHERE h.connector_id = v_held.connector_id;
    END IF;
    PERFORM connector._audit('reset_cursor', v_held.connector, v_held.tenant_id,
        jsonb_build_object('topic', v_held.topic, 'topic_id', v_held.topic_id, 'cluster_id', v_held.cluster_id, 'offsets', v_forgot));
    RETURN (SELECT count(*) FROM jsonb_object_keys(v_forgot));
END
$fn$;
COMMENT ON FUNCTION connector.reset_cursor(text) IS 'Forget the stored positions of a connector; returns the number of partitions. The next run starts at start_position; refused while a run is active.';
REVOKE ALL ON FUNCTION connector.reset_cursor(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.reset_cursor(text) TO highwater_operator;

CREATE OR REPLACE FUNCTION connector.seek(name text, to_timestamp timestamptz)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.seek(name, to_timestamp)
--   Lets the next run begin, in every partition, at the first message of that time or later. Only the broker knows which
--   offsets these are: positions stay as they are until that run plans.
-- Errors:  P0002 no such connector; 55006 a run is active; 22023 no time.
-- Locks:   endpoint, cursor.
-- Touches: connector._endpoint, connector._cursor (update), connector._audit.
DECLARE
    v_held connector._endpoint;
BEGIN
    IF to_timestamp IS NULL OR NOT isfinite(to_timestamp) THEN
        RAISE EXCEPTION 'to_timestamp must be a time, not %', coalesce(to_timestamp::text, 'NULL')
            USING ERRCODE = '22023', HINT = format('Example: SELECT connector.seek(%L, timestamptz ''2026-01-31 12:00Z'');', name);
    END IF;
    v_held := connector._hold_idle(name);
    UPDATE connector._endpoint AS e SET seek_to = seek.to_timestamp WHERE e.connector_id = v_held.connector_id;
    -- Positions that were sought one by one before this are overtaken by it.
    UPDATE connector._cursor AS c SET sought = false WHERE c.connector_id = v_held.connector_id AND c.sought;
    PERFORM connector._audit('seek', v_held.connector, v_held.tenant_id, jsonb_build_object('to_timestamp', seek.to_timestamp));
END
$fn$;
COMMENT ON FUNCTION connector.seek(text, timestamptz) IS 'Let the next run begin at the first message of that time or later, in every partition; refused while a run is active.';
REVOKE ALL ON FUNCTION connector.seek(text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.seek(text, timestamptz) TO highwater_operator;

CREATE OR REPLACE FUNCTION connector.seek(name text, partition integer, next_offset bigint)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.seek(name, partition, next_offset)
--   Lets the next run begin at next_offset in one partition. Whether the broker has that partition and offset is judged when
--   that run plans: it fails, naming both numbers, and reads nothing. The last gesture holds: a time that was sought before
--   and not yet read from is dropped, the other partitions go on where they are.
-- Errors:  P0002 no such connector; 55006 a run is active; 22023 a negative number or NULL.
-- Locks:   endpoint, cursor.
-- Touches: connector._cursor (upsert), connector._endpoint (update), connector._audit.
DECLARE
    v_held connector._endpoint;
    v_from bigint;
BEGIN
    IF partition IS NULL OR partition < 0 OR next_offset IS NULL OR next_offset < 0 THEN
        RAISE EXCEPTION 'partition and next_offset must be 0 or more, not % and %',
            coalesce(partition::text, 'NULL'), coalesce(next_offset::text, 'NULL')
            USING ERRCODE = '22023', HINT = format('Example: SELECT connector.seek(%L, 0, 1200); the positions now: TABLE connector.connector_cursor;', name);
    END IF;
    v_held := connector._hold_idle(name);
    SELECT c.next_offset INTO v_from
    FROM connector._cursor AS c
    WHERE c.connector_id = v_held.connector_id AND c.partition = seek.partition;
    INSERT INTO connector._cursor AS c (connector_id, partition, tenant_id, next_offset, fence, sought)
    VALUES (v_held.connector_id, seek.partition, v_held.tenant_id, seek.next_offset, v_held.fence, true)
    ON CONFLICT ON CONSTRAINT _cursor_pkey DO UPDATE
    SET next_offset = excluded.next_offset,
        leader_epoch = -1,
        last_chunk = NULL,
        sought = true,
        updated_at = clock_timestamp();
    UPDATE connector._endpoint AS e SET seek_to = NULL WHERE e.connector_id = v_held.connector_id AND e.seek_to IS NOT NULL;
    PERFORM connector._audit('seek', v_held.connector, v_held.tenant_id,
        jsonb_build_object('partition', seek.partition, 'from', v_from, 'to', seek.next_offset));
END
$fn$;
COMMENT ON FUNCTION connector.seek(text, integer, bigint) IS 'Let the next run begin at next_offset (the first one to read) in one partition; refused while a run is active.';
REVOKE ALL ON FUNCTION connector.seek(text, integer, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.seek(text, integer, bigint) TO highwater_operator;
