-- Closing dead letters by hand. Every gesture leaves a row in connector.audit.

CREATE OR REPLACE FUNCTION connector._close_letters(ids uuid[], status text)
RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._close_letters(ids, status)
--   Sets open dead letters of the session's tenant to a final status; one audit row a connector.
-- Returns: how many were open; ids that are unknown, another tenant's or closed are passed over.
-- Touches: connector._dlq (update, in id order), connector._audit.
DECLARE
    v_closed record;
    v_count  integer := 0;
BEGIN
    FOR v_closed IN
        WITH open AS (
            SELECT d.id
            FROM connector._dlq AS d
            WHERE d.id = ANY (ids) AND d.status = 'open' AND d.tenant_id = connector.current_tenant()
            ORDER BY d.id
            FOR UPDATE),
        closed AS (
            UPDATE connector._dlq AS d
            SET status = _close_letters.status
            FROM open AS o
            WHERE d.id = o.id
            RETURNING d.id, d.connector, d.tenant_id)
        SELECT c.connector, c.tenant_id, count(*) AS letters, jsonb_agg(c.id) AS ids
        FROM closed AS c
        GROUP BY c.connector, c.tenant_id
    LOOP
        PERFORM connector._audit(CASE status WHEN 'discarded' THEN 'dlq_discard' ELSE 'dlq_replayed' END,
            v_closed.connector, v_closed.tenant_id, jsonb_build_object('ids', v_closed.ids));
        v_count := v_count + v_closed.letters;
    END LOOP;
    RETURN v_count;
END
$fn$;
COMMENT ON FUNCTION connector._close_letters(uuid[], text) IS 'Internal: set open dead letters to a final status.';
REVOKE ALL ON FUNCTION connector._close_letters(uuid[], text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector.dlq_discard(id uuid)
RETURNS boolean
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.dlq_discard(id)
--   Marks an open dead letter as one that nobody will land. The row stays.
-- Returns: false where there is no such open letter.
SELECT connector._close_letters(ARRAY[dlq_discard.id], 'discarded') = 1
$fn$;
COMMENT ON FUNCTION connector.dlq_discard(uuid) IS 'Mark an open dead letter as discarded; false where there is no such open letter.';
REVOKE ALL ON FUNCTION connector.dlq_discard(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.dlq_discard(uuid) TO highwater_operator;

CREATE OR REPLACE FUNCTION connector.dlq_discard(ids uuid[])
RETURNS integer
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.dlq_discard(ids)
--   The same for many: SELECT connector.dlq_discard(array_agg(id)) FROM connector.dlq WHERE ...;
-- Returns: how many were open.
SELECT connector._close_letters(dlq_discard.ids, 'discarded')
$fn$;
COMMENT ON FUNCTION connector.dlq_discard(uuid[]) IS 'Mark open dead letters as discarded; returns how many were open.';
REVOKE ALL ON FUNCTION connector.dlq_discard(uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.dlq_discard(uuid[]) TO highwater_operator;

CREATE OR REPLACE FUNCTION connector.dlq_replayed(id uuid)
RETURNS boolean
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.dlq_replayed(id)
--   Marks an open dead letter as one that was landed by other means. The row stays.
-- Returns: false where there is no such open letter.
SELECT connector._close_letters(ARRAY[dlq_replayed.id], 'replayed') = 1
$fn$;
COMMENT ON FUNCTION connector.dlq_replayed(uuid) IS 'Mark an open dead letter as replayed; false where there is no such open letter.';
REVOKE ALL ON FUNCTION connector.dlq_replayed(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.dlq_replayed(uuid) TO highwater_operator;

CREATE OR REPLACE FUNCTION connector.dlq_replayed(ids uuid[])
RETURNS integer
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.dlq_replayed(ids)
--   The same for many: SELECT connector.dlq_replayed(array_agg(id)) FROM connector.dlq WHERE ...;
-- Returns: how many were open.
SELECT connector._close_letters(dlq_replayed.ids, 'replayed')
$fn$;
COMMENT ON FUNCTION connector.dlq_replayed(uuid[]) IS 'Mark open dead letters as replayed; returns how many were open.';
REVOKE ALL ON FUNCTION connector.dlq_replayed(uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.dlq_replayed(uuid[]) TO highwater_operator;
