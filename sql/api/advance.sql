-- The end of a chunk's transaction: the positions move and the counters grow, or nothing of the chunk stays.

CREATE OR REPLACE FUNCTION connector._advance(run_id uuid, fence bigint, chunk_id uuid, advances jsonb)
RETURNS TABLE (cancel_requested boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._advance(run_id, fence, chunk_id, advances)
--   Moves the positions of one chunk by compare-and-set on position and fence, and counts what the chunk held. Called last
--   in the chunk's transaction, once. Waits for the rows by key before it compares: an UPDATE that names the old position
--   would not wait for a predecessor that is just committing, it would find no row.
-- advances: [{"partition","from","to","epoch","written","duplicates","dead_letters","filtered","tombstones_applied",
--            "no_record"}], each partition once; counters that are left out are 0.
-- Returns: one row: whether somebody asked for the run to be cancelled.
-- Errors:  KC010 a position or the fence is not the caller's any more, or the run has ended; KC011 the counters do not
--          add up to the offsets, or a position would pass its target.
-- Locks:   cursor (in partition order), run.
-- Touches: connector._cursor, connector._run_partition, connector._run (update).
DECLARE
    v_connector uuid;
    v_given     integer := jsonb_array_length(advances);
    v_moved     integer;
BEGIN
    SELECT r.connector_id INTO v_connector FROM connector._run AS r WHERE r.run_id = _advance.run_id;
    PERFORM
    FROM connector._cursor AS c
    WHERE c.connector_id = v_connector
        AND c.partition IN (SELECT a.partition FROM jsonb_to_recordset(advances) AS a (partition integer))
    ORDER BY c.partition
    FOR UPDATE;

    UPDATE connector._cursor AS c
    SET next_offset = a."to",
        leader_epoch = coalesce(a.epoch, -1),
        last_chunk = _advance.chunk_id,
        updated_at = clock_timestamp()
    FROM jsonb_to_recordset(advances) AS a (partition integer, "from" bigint, "to" bigint, epoch integer)
    WHERE c.connector_id = v_connector AND c.partition = a.partition AND c.next_offset = a."from" AND c.fence = _advance.fence;
    GET DIAGNOSTICS v_moved = ROW_COUNT;
    IF v_moved <> v_given THEN
        PERFORM connector._fenced(_advance.run_id);
    END IF;

    UPDATE connector._run_partition AS p
    SET next_offset = a."to",
        reached = CASE WHEN a."to" = p.target_offset THEN 'at target' END,
        written = p.written + coalesce(a.written, 0),
        duplicates = p.duplicates + coalesce(a.duplicates, 0),
        dead_letters = p.dead_letters + coalesce(a.dead_letters, 0),
        filtered = p.filtered + coalesce(a.filtered, 0),
        tombstones_applied = p.tombstones_applied + coalesce(a.tombstones_applied, 0),
        no_record = p.no_record + coalesce(a.no_record, 0)
    FROM jsonb_to_recordset(advances) AS a (partition integer, "from" bigint, "to" bigint, written bigint, duplicates bigint,
        dead_letters bigint, filtered bigint, tombstones_applied bigint, no_record bigint)
    WHERE p.run_id = _advance.run_id AND p.partition = a.partition AND p.next_offset = a."from" AND a."to" <= p.target_offset
        AND a."to" - a."from" = coalesce(a.written, 0) + coalesce(a.duplicates, 0) + coalesce(a.dead_letters, 0)
            + coalesce(a.filtered, 0) + coalesce(a.tombstones_applied, 0) + coalesce(a.no_record, 0);
    GET DIAGNOSTICS v_moved = ROW_COUNT;
    IF v_moved <> v_given THEN
        RAISE EXCEPTION 'chunk % of run % does not add up', _advance.chunk_id, _advance.run_id
            USING ERRCODE = 'KC011',
                  DETAIL  = format('Advances: %s.', left(advances::text, 1000)),
                  HINT    = 'Internal: please report this with the rows of connector.accounting for the run.';
    END IF;

    RETURN QUERY SELECT * FROM connector._count(_advance.run_id, advances);
    IF NOT FOUND THEN
        PERFORM connector._fenced(_advance.run_id);
    END IF;
END
$fn$;
COMMENT ON FUNCTION connector._advance(uuid, bigint, uuid, jsonb) IS 'Internal: move the positions of a chunk by compare-and-set and count what it held.';
REVOKE ALL ON FUNCTION connector._advance(uuid, bigint, uuid, jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._count(run_id uuid, advances jsonb)
RETURNS TABLE (cancel_requested boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._count(run_id, advances)
--   Adds a chunk to the totals of its run. A chunk whose every message is a dead letter counts towards poison_chunks, one
--   with a good message sets that back, and one that held no message changes nothing.
-- Returns: one row, or none where the run is not Running.
-- Touches: connector._run (update).
BEGIN
    RETURN QUERY
    UPDATE connector._run AS r
    SET records_out = r.records_out + s.written + s.duplicates,
        duplicates = r.duplicates + s.duplicates,
        dead_letters = r.dead_letters + s.dead_letters,
        filtered = r.filtered + s.filtered,
        tombstones_applied = r.tombstones_applied + s.tombstones_applied,
        chunks = r.chunks + 1,
        poison_chunks = CASE
            WHEN s.written + s.duplicates + s.filtered + s.tombstones_applied > 0 THEN 0
            WHEN s.dead_letters > 0 THEN r.poison_chunks + 1
            ELSE r.poison_chunks
        END
    FROM (
        SELECT coalesce(sum(a.written), 0)::bigint AS written,
            coalesce(sum(a.duplicates), 0)::bigint AS duplicates,
            coalesce(sum(a.dead_letters), 0)::bigint AS dead_letters,
            coalesce(sum(a.filtered), 0)::bigint AS filtered,
            coalesce(sum(a.tombstones_applied), 0)::bigint AS tombstones_applied
        FROM jsonb_to_recordset(advances)
            AS a (written bigint, duplicates bigint, dead_letters bigint, filtered bigint, tombstones_applied bigint)) AS s
    WHERE r.run_id = _count.run_id AND r.status = 'Running'
    RETURNING r.cancel_requested;
END
$fn$;
COMMENT ON FUNCTION connector._count(uuid, jsonb) IS 'Internal: add a chunk to the totals of its run.';
REVOKE ALL ON FUNCTION connector._count(uuid, jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._fenced(run_id uuid)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._fenced(run_id)
--   Refuses a write by a sidecar whose lease or position is not its own any more. Always raises KC010.
BEGIN
    RAISE EXCEPTION 'run % may not write: its lease has passed on, or its position is not where this chunk begins', _fenced.run_id
        USING ERRCODE = 'KC010', HINT = 'Internal: nothing was written. Another sidecar holds the run now; see connector.runs.';
END
$fn$;
COMMENT ON FUNCTION connector._fenced(uuid) IS 'Internal: refuse a write by a sidecar whose lease has passed on.';
REVOKE ALL ON FUNCTION connector._fenced(uuid) FROM PUBLIC;
