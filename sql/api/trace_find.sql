-- connector.trace: what became of one message.

CREATE OR REPLACE FUNCTION connector._trace_read(held connector._endpoint, partition integer, at_offset bigint)
RETURNS TABLE (outcome text, detail text, run_id uuid)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._trace_read(held, partition, at_offset)
--   Looks through the runs that read an offset, the newest first: that one left a dead letter or a row, or found the row
--   there already, which then an older one has written. A letter that a retry landed is the row of that retry.
-- Returns: one row, or none where no run has read the offset.
-- Touches: connector._run, connector._run_partition, connector._dlq, the connector's table (read).
DECLARE
    v_letter connector._dlq;
    v_run    record;
    v_newest connector._run_partition;
    v_id     bigint;
    v_made   boolean := coalesce(has_table_privilege(to_regclass(format('connector.%I', held.table_name)), 'SELECT'), false);
    v_note   text := '';
BEGIN
    SELECT l.* INTO v_letter FROM connector._trace_letter(held.connector_id, held.topic_id, held.topic, partition, at_offset) AS l;
    FOR v_run IN
        SELECT r.run_id AS run, r.started_at, p.written, p.duplicates, p.filtered, p.tombstones_applied, p.no_record
        FROM connector._run AS r
        JOIN connector._run_partition AS p ON p.run_id = r.run_id AND p.partition = _trace_read.partition
        WHERE r.connector_id = held.connector_id AND p.topic = held.topic
            AND at_offset >= p.start_offset AND at_offset < p.next_offset
        UNION ALL
        SELECT r.run_id, r.started_at, 1, 0, 0, 0, 0
        FROM connector._run AS r
        WHERE r.run_id = v_letter.run_id AND r.started_by = 'retry' AND v_letter.status = 'replayed'
        ORDER BY 2 DESC
    LOOP
        IF v_newest.run_id IS NULL THEN
            v_newest.run_id := v_run.run;
            v_newest.duplicates := v_run.duplicates;
            v_newest.filtered := v_run.filtered;
            v_newest.tombstones_applied := v_run.tombstones_applied;
            v_newest.no_record := v_run.no_record;
        END IF;
        IF v_made AND v_run.written > 0 THEN
            v_id := connector._trace_row(held.table_name, v_run.run, held.topic, partition, at_offset);
            IF v_id IS NOT NULL THEN
                RETURN QUERY SELECT 'row', format('id %s of connector.%I%s', v_id, held.table_name, v_note), v_run.run;
                RETURN;
            END IF;
        END IF;
        EXIT WHEN v_run.run = v_letter.run_id;
        IF v_run.duplicates > 0 THEN
            v_note := format('; run %s found it there already', v_newest.run_id);
        END IF;
    END LOOP;

    IF v_letter.id IS NOT NULL THEN
        RETURN QUERY SELECT 'dead letter', format('id %s, %s, %s: %s', v_letter.id, v_letter.status, v_letter.reason, v_letter.message), v_letter.run_id;
    ELSIF v_newest.run_id IS NOT NULL THEN
        RETURN QUERY SELECT w.outcome, w.detail, v_newest.run_id
        FROM connector._trace_words(v_newest.duplicates, v_newest.filtered, v_newest.tombstones_applied, v_newest.no_record) AS w;
    END IF;
END
$fn$;
COMMENT ON FUNCTION connector._trace_read(connector._endpoint, integer, bigint) IS 'Internal: what became of an offset that a run has read.';
REVOKE ALL ON FUNCTION connector._trace_read(connector._endpoint, integer, bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._trace_words(duplicates bigint, filtered bigint, tombstones_applied bigint, no_record bigint)
RETURNS TABLE (outcome text, detail text)
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._trace_words(duplicates, filtered, tombstones_applied, no_record)
--   What an offset was that is neither a row nor a letter, by the counters of the run that read it: they are kept for a
--   partition, not for each offset, so where two kinds come into question both are named.
SELECT CASE
        WHEN c.passed > 0 THEN 'filtered or duplicate'
        WHEN c.holes > 0 THEN 'no record'
        ELSE 'row' END,
    CASE
        WHEN c.passed > 0 AND c.holes > 0 THEN c.words || format('; or no record: %s of its offsets held none', c.holes)
        WHEN c.passed > 0 THEN c.words
        WHEN c.holes > 0 THEN format('a transaction marker, an aborted or a compacted record: %s offsets of this run and partition held no record', c.holes)
        ELSE 'the run wrote it, and it is no longer in the table: somebody deleted it or changed its _source or _run_id' END
FROM (
    SELECT coalesce($1, 0) + coalesce($2, 0) + coalesce($3, 0) AS passed,
        coalesce($4, 0) AS holes,
        format('of this run and partition the table held %s already, the filter left out %s, and %s were applied as tombstones', $1, $2, $3) AS words) AS c
$fn$;
COMMENT ON FUNCTION connector._trace_words(bigint, bigint, bigint, bigint) IS 'Internal: what an offset was that is neither a row nor a dead letter.';
REVOKE ALL ON FUNCTION connector._trace_words(bigint, bigint, bigint, bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._trace(name text, partition integer, at_offset bigint)
RETURNS TABLE (outcome text, detail text, run_id uuid)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._trace(name, partition, at_offset)
--   Says where a message of the topic that the connector reads went. Costs a look at each run of the connector in the
--   ledger, and a bisection of the table by its primary key (see _trace_row); no scan, whatever the table's size, unless
--   one run read far more of other partitions than of this one.
-- Returns: one row. outcome: row | dead letter | no record | lost | filtered or duplicate | not read yet.
-- Errors:  P0002 no such connector; 22023 a partition or offset that cannot be.
-- Touches: the connector's table, the ledger, positions and dead letters (read).
DECLARE
    v_held connector._endpoint;
BEGIN
    IF partition IS NULL OR partition < 0 OR at_offset IS NULL OR at_offset < 0 THEN
        RAISE EXCEPTION 'partition and offset must be 0 or more, not % and %', coalesce(partition::text, 'NULL'), coalesce(at_offset::text, 'NULL')
            USING ERRCODE = '22023', HINT = format('Example: SELECT * FROM connector.trace(%L, 0, 1234);', name);
    END IF;
    SELECT e.* INTO v_held FROM connector._endpoint AS e WHERE e.connector_id = (connector._find(name)).connector_id;
    RETURN QUERY SELECT t.* FROM connector._trace_read(v_held, partition, at_offset) AS t;
    IF NOT FOUND THEN
        RETURN QUERY SELECT t.* FROM connector._trace_unread(v_held.connector_id, v_held.topic, partition, at_offset) AS t;
    END IF;
END
$fn$;
COMMENT ON FUNCTION connector._trace(text, integer, bigint) IS 'Internal: where a message went; connector.trace without its caller''s name for the offset, which is a key word.';
REVOKE ALL ON FUNCTION connector._trace(text, integer, bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector.trace(name text, partition integer, "offset" bigint)
RETURNS TABLE (outcome text, detail text, run_id uuid)
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.trace(name, partition, offset)
--   Says where a message of the topic that the connector reads went; see _trace.
SELECT t.outcome, t.detail, t.run_id FROM connector._trace(trace.name, trace.partition, trace."offset") AS t
$fn$;
COMMENT ON FUNCTION connector.trace(text, integer, bigint) IS 'Where the message at a partition and offset went, as one row (outcome, detail, run_id): row (its id), dead letter (its id and reason), no record, lost, filtered or duplicate, or not read yet (the position). Finds the row by the primary key, not by a scan.';
REVOKE ALL ON FUNCTION connector.trace(text, integer, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.trace(text, integer, bigint) TO highwater_operator, highwater_reader;
