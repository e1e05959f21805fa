-- Where one message went: its row, its dead letter, or why there is neither.

CREATE OR REPLACE FUNCTION connector._trace_row(table_name text, run_id uuid, topic text, partition integer, at_offset bigint)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._trace_row(table_name, run_id, topic, partition, at_offset)
--   Finds the row that a run made of a message. _source has no index, but ids rise from run to run and, within a run, with
--   the offsets of a partition: so a bisection by the primary key finds it in some twenty look-ups, each of which passes over
--   the rows of other partitions that lie between. Rows that bear no run of the ledger are passed over. Ids that somebody
--   made fall (setval) hide rows from this.
-- Returns: the row's id; null where the run made none, or it is gone.
-- Touches: the connector's table, by its primary key, and connector._run (read).
DECLARE
    v_prefix  text := format('kafka:%s:%s:', topic, partition);
    v_started timestamptz := (SELECT r.started_at FROM connector._run AS r WHERE r.run_id = _trace_row.run_id);
    v_low     bigint;
    v_high    bigint;
    v_from    bigint;
    v_id      bigint;
    v_run     uuid;
    v_source  text;
    v_order   bigint; -- below 0: the row lies before the one sought; 0: it is the one
BEGIN
    EXECUTE format('SELECT min(x.id), max(x.id) FROM connector.%I AS x', table_name) INTO v_low, v_high;
    WHILE v_low <= v_high LOOP
        v_from := v_low + (v_high - v_low) / 2;
        LOOP
            -- OFFSET 0 keeps the two selects apart, so that rows are read in the index's order and the first that fits ends it.
            EXECUTE format('SELECT x.id, x._run_id, x._source
                FROM (SELECT y.id, y._run_id, y._source FROM connector.%I AS y WHERE y.id BETWEEN $1 AND $2 ORDER BY y.id OFFSET 0) AS x
                WHERE x._run_id <> $3 OR starts_with(x._source, $4) LIMIT 1', table_name)
                INTO v_id, v_run, v_source USING v_from, v_high, _trace_row.run_id, v_prefix;
            EXIT WHEN v_id IS NULL;
            IF v_run = _trace_row.run_id THEN
                v_order := substr(v_source, length(v_prefix) + 1)::bigint - at_offset;
                EXIT;
            END IF;
            SELECT CASE WHEN r.started_at < v_started THEN -1 ELSE 1 END INTO v_order FROM connector._run AS r WHERE r.run_id = v_run;
            EXIT WHEN FOUND;
            v_from := v_id + 1;
        END LOOP;
        IF v_id IS NULL OR v_order > 0 THEN
            v_high := v_low + (v_high - v_low) / 2 - 1;
        ELSIF v_order = 0 THEN
            RETURN v_id;
        ELSE
            v_low := v_id + 1;
        END IF;
    END LOOP;
    RETURN NULL;
END
$fn$;
COMMENT ON FUNCTION connector._trace_row(text, uuid, text, integer, bigint) IS 'Internal: the row that a run made of a message, by bisection of the ids.';
REVOKE ALL ON FUNCTION connector._trace_row(text, uuid, text, integer, bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._trace_unread(connector_id uuid, topic text, partition integer, at_offset bigint)
RETURNS TABLE (outcome text, detail text, run_id uuid)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._trace_unread(connector_id, topic, partition, at_offset)
--   Says of an offset that no run has read why that is: it was lost, or the position has not come to it, or has passed it.
-- Touches: connector._run, connector._run_partition, connector._cursor (read).
DECLARE
    v_plan     record;
    v_position bigint;
BEGIN
    SELECT r.run_id AS run, r.code, p.lost_from, p.lost_to, p.start_offset INTO v_plan
    FROM connector._run AS r
    JOIN connector._run_partition AS p ON p.run_id = r.run_id AND p.partition = _trace_unread.partition
    WHERE r.connector_id = _trace_unread.connector_id
        AND p.topic = _trace_unread.topic
        AND (at_offset BETWEEN p.lost_from AND p.lost_to
            OR (r.code = 'expired_before_first_read' AND at_offset < p.start_offset))
    ORDER BY r.started_at DESC
    LIMIT 1;
    IF FOUND THEN
        RETURN QUERY SELECT 'lost', format('offsets %s to %s had left the broker before they were read',
            coalesce(v_plan.lost_from, 0), coalesce(v_plan.lost_to, v_plan.start_offset - 1)), v_plan.run;
        RETURN;
    END IF;
    SELECT c.next_offset INTO v_position
    FROM connector._cursor AS c
    WHERE c.connector_id = _trace_unread.connector_id AND c.partition = _trace_unread.partition;
    RETURN QUERY SELECT 'not read yet', CASE
        WHEN v_position IS NULL THEN 'the partition has no position: no run has read it since the last reset_cursor'
        WHEN v_position <= at_offset THEN format('the position is offset %s', v_position)
        ELSE format('the position is offset %s, and no run has read below it here: start_position or connector.seek passed it over', v_position)
        END, NULL::uuid;
END
$fn$;
COMMENT ON FUNCTION connector._trace_unread(uuid, text, integer, bigint) IS 'Internal: why no run has read an offset.';
REVOKE ALL ON FUNCTION connector._trace_unread(uuid, text, integer, bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._trace_letter(connector_id uuid, topic_id uuid, topic text, partition integer, at_offset bigint)
RETURNS SETOF connector._dlq
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._trace_letter(connector_id, topic_id, topic, partition, at_offset)
--   The dead letter of a message, if there is one. In two parts, so that each uses the unique index.
-- Touches: connector._dlq (read).
SELECT d.*
FROM connector._dlq AS d
WHERE d.connector_id = $1 AND d.topic_id = $2 AND d.topic = $3 AND d.partition = $4 AND d."offset" = $5
UNION ALL
SELECT d.*
FROM connector._dlq AS d
WHERE d.connector_id = $1 AND d.topic_id IS NULL AND d.topic = $3 AND d.partition = $4 AND d."offset" = $5
LIMIT 1
$fn$;
COMMENT ON FUNCTION connector._trace_letter(uuid, uuid, text, integer, bigint) IS 'Internal: the dead letter of a message.';
REVOKE ALL ON FUNCTION connector._trace_letter(uuid, uuid, text, integer, bigint) FROM PUBLIC;
