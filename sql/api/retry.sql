-- Dead letters decoded again: a run that reads its messages from connector.dlq instead of from the broker.

CREATE OR REPLACE FUNCTION connector._retry_check(ids uuid[])
RETURNS uuid
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._retry_check(ids)
--   Refuses letters that cannot be decoded again. Another tenant's letter is answered as an unknown one.
-- Returns: the connector that they all belong to.
-- Errors:  22023 none given, or of several connectors; P0002 an unknown one; 55000 a closed one, or one without its value.
-- Touches: connector._dlq (read).
DECLARE
    v_letter    record;
    v_connector uuid;
BEGIN
    FOR v_letter IN
        SELECT i.id, d.id IS NOT NULL AS known, d.connector_id, d.status, d.raw IS NULL OR (d.reason = 'TooLarge' AND length(d.raw) = 0) AS bare
        FROM unnest(ids) AS i (id)
        LEFT JOIN connector._dlq AS d ON d.id = i.id AND d.tenant_id = connector.current_tenant()
        ORDER BY i.id
    LOOP
        IF NOT v_letter.known THEN
            RAISE EXCEPTION 'dead letter "%" does not exist', coalesce(v_letter.id::text, 'NULL')
                USING ERRCODE = 'P0002', HINT = 'List them with: SELECT id, connector, reason FROM connector.dlq WHERE status = ''open'';';
        ELSIF v_letter.status <> 'open' THEN
            RAISE EXCEPTION 'dead letter % is %, not open', v_letter.id, v_letter.status
                USING ERRCODE = '55000', HINT = 'Only open letters are decoded again: SELECT id FROM connector.dlq WHERE status = ''open'';';
        ELSIF v_letter.bare THEN
            RAISE EXCEPTION 'dead letter % keeps no value to decode again', v_letter.id
                USING ERRCODE = '55000',
                      HINT    = 'It is a tombstone, or its value is larger than 1 MiB. Leave it out, or read its offset again with connector.seek.';
        ELSIF v_letter.connector_id <> v_connector THEN
            RAISE EXCEPTION 'the dead letters belong to several connectors'
                USING ERRCODE = '22023', HINT = 'Call connector.dlq_retry once for each connector: one run belongs to one.';
        END IF;
        v_connector := v_letter.connector_id;
    END LOOP;
    IF v_connector IS NULL THEN
        RAISE EXCEPTION 'no dead letter is given'
            USING ERRCODE = '22023',
                  HINT    = 'Example: SELECT connector.dlq_retry(array(SELECT id FROM connector.dlq WHERE connector = ''acme'' AND status = ''open''));';
    END IF;
    RETURN v_connector;
END
$fn$;
COMMENT ON FUNCTION connector._retry_check(uuid[]) IS 'Internal: refuse dead letters that cannot be decoded again.';
REVOKE ALL ON FUNCTION connector._retry_check(uuid[]) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector.dlq_retry(ids uuid[])
RETURNS uuid
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.dlq_retry(ids)
--   Asks for a run that decodes the stored values of open dead letters again, under the configuration as it is when the run
--   starts. Each letter is a transaction of its own: its row lands and it is marked replayed, or it stays open with one
--   attempt more and the new reason. The run waits for the active one; it moves no position and asks no broker. What a
--   letter does not keep is null in its row: the message's timestamp. One that is closed meanwhile is passed over.
-- Returns: the run's id, for connector.wait, connector.cancel and connector.runs.
-- Errors:  22023 none given, or of several connectors; P0002 an unknown one; 55000 a closed one, or one without its value.
--          Warning KC002: no sidecar was seen for 15 s.
-- Touches: connector._run, connector._retry, connector._audit (insert), the queue.
DECLARE
    v_ids  uuid[] := ARRAY(SELECT DISTINCT i.id FROM unnest(ids) AS i (id));
    v_run  connector._run;
    v_from uuid := connector._retry_check(v_ids);
BEGIN
    INSERT INTO connector._run AS r (run_id, connector_id, connector, tenant_id, started_by, requested_by, if_active)
    SELECT gen_random_uuid(), m.connector_id, m.name, m.tenant_id, 'retry', session_user, 'wait'
    FROM connector.manifest AS m
    WHERE m.connector_id = v_from
    RETURNING r.* INTO v_run;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the connector of these dead letters does not exist any more'
            USING ERRCODE = 'P0002', HINT = 'List the names with: SELECT name FROM connector.connectors;';
    END IF;
    INSERT INTO connector._retry (run_id, letter_id, tenant_id)
    SELECT v_run.run_id, i.id, v_run.tenant_id
    FROM unnest(v_ids) AS i (id);
    PERFORM connector._enqueue(v_run.run_id);
    PERFORM connector._audit('dlq_retry', v_run.connector, v_run.tenant_id, jsonb_build_object('ids', to_jsonb(v_ids), 'run_id', v_run.run_id));
    PERFORM connector._warn_no_sidecar();
    RETURN v_run.run_id;
END
$fn$;
COMMENT ON FUNCTION connector.dlq_retry(uuid[]) IS 'Ask for a run that decodes the stored values of open dead letters of one connector again, under its configuration as it is then; returns the run''s id. Each letter lands and is marked replayed, or stays open with the new reason.';
REVOKE ALL ON FUNCTION connector.dlq_retry(uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.dlq_retry(uuid[]) TO highwater_operator;

CREATE OR REPLACE FUNCTION connector.dlq_retry(id uuid)
RETURNS uuid
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.dlq_retry(id)
--   The same for one dead letter.
SELECT connector.dlq_retry(ARRAY[dlq_retry.id])
$fn$;
COMMENT ON FUNCTION connector.dlq_retry(uuid) IS 'Ask for a run that decodes the stored value of an open dead letter again, under its connector''s configuration as it is then; returns the run''s id.';
REVOKE ALL ON FUNCTION connector.dlq_retry(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.dlq_retry(uuid) TO highwater_operator;

CREATE OR REPLACE FUNCTION connector._retry_done(run_id uuid, fence bigint, chunk_id uuid, letter_id uuid, counts jsonb)
RETURNS TABLE (cancel_requested boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._retry_done(run_id, fence, chunk_id, letter_id, counts)
--   The end of a retried letter's transaction, what _advance is to other chunks: counts it and closes it where it is not a
--   dead letter again. A letter that the filter leaves out now is settled too.
-- counts:  as _advance's advances; of one message.
-- Returns: one row: whether somebody asked for the run to be cancelled.
-- Errors:  KC010 the fence is not the caller's any more, the letter is done, or the run has ended.
-- Locks:   retry, letter (the caller holds both), run.
-- Touches: connector._retry, connector._dlq, connector._run (update).
BEGIN
    UPDATE connector._retry AS t
    SET done = true,
        chunk = _retry_done.chunk_id
    WHERE t.run_id = _retry_done.run_id AND t.letter_id = _retry_done.letter_id AND t.fence = _retry_done.fence AND NOT t.done;
    IF NOT FOUND THEN
        PERFORM connector._fenced(_retry_done.run_id);
    END IF;
    UPDATE connector._dlq AS d
    SET status = 'replayed',
        run_id = _retry_done.run_id
    WHERE d.id = _retry_done.letter_id
        AND NOT EXISTS (SELECT FROM jsonb_to_recordset(counts) AS c (dead_letters bigint) WHERE c.dead_letters > 0);
    RETURN QUERY SELECT * FROM connector._count(_retry_done.run_id, counts);
    IF NOT FOUND THEN
        PERFORM connector._fenced(_retry_done.run_id);
    END IF;
END
$fn$;
COMMENT ON FUNCTION connector._retry_done(uuid, bigint, uuid, uuid, jsonb) IS 'Internal: count a retried letter and close it, where it is none again.';
REVOKE ALL ON FUNCTION connector._retry_done(uuid, bigint, uuid, uuid, jsonb) FROM PUBLIC;
