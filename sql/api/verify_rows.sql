-- The tables against the ledger, and connector.verify, which asks all checks.

CREATE OR REPLACE FUNCTION connector._verify_rows(tenant_id bigint, strict boolean)
RETURNS TABLE (identity text, connector text, run_id uuid, partition integer, detail text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._verify_rows(tenant_id, strict)
--   Rows of each connector's table, by _run_id, against what the runs say they wrote. More rows than written is a fault
--   always. Fewer is one only where nobody deletes rows, which we cannot know: reported where strict. Rows that bear no
--   run of the ledger are somebody else's and not looked at.
-- Touches: connector._endpoint, connector._run, every connector table (read, one scan each).
DECLARE
    v_table record;
BEGIN
    FOR v_table IN
        SELECT e.connector_id, c.relname
        FROM connector._endpoint AS e
        JOIN pg_namespace AS n ON n.nspname = 'connector'
        JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = e.table_name AND c.relkind IN ('r', 'p')
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = '_run_id' AND a.atttypid = 'uuid'::regtype AND NOT a.attisdropped
        WHERE e.tenant_id = _verify_rows.tenant_id AND has_table_privilege(c.oid, 'SELECT')
        ORDER BY c.relname
    LOOP
        RETURN QUERY EXECUTE format($sql$
            SELECT CASE WHEN coalesce(t.held, 0) > r.records_out - r.duplicates
                    THEN 'rows of a run <= rows it wrote' ELSE 'rows of a run = rows it wrote (strict)' END,
                r.connector, r.run_id, NULL::integer,
                format('table %%I holds %%s rows of this run, it wrote %%s', %1$L, coalesce(t.held, 0), r.records_out - r.duplicates)
            FROM connector._run AS r
            LEFT JOIN (SELECT x._run_id, count(*) AS held FROM connector.%1$I AS x GROUP BY x._run_id) AS t ON t._run_id = r.run_id
            WHERE r.connector_id = $1
                AND (coalesce(t.held, 0) > r.records_out - r.duplicates OR ($2 AND coalesce(t.held, 0) < r.records_out - r.duplicates))
            $sql$, v_table.relname) USING v_table.connector_id, strict;
    END LOOP;
END
$fn$;
COMMENT ON FUNCTION connector._verify_rows(bigint, boolean) IS 'Internal: tables that do not hold what the ledger says was written.';
REVOKE ALL ON FUNCTION connector._verify_rows(bigint, boolean) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector.verify(strict boolean DEFAULT false)
RETURNS TABLE (identity text, connector text, run_id uuid, partition integer, detail text)
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.verify(strict)
--   Checks that the books are right, for the connectors of the session's tenant; may be called while runs work.
-- strict:  also report runs of whose rows some are missing: a fault, unless somebody deleted rows from the table.
-- Returns: one row for each identity that does not hold; no row is the only right answer.
-- Touches: everything the product keeps, and one scan of every connector table (read).
SELECT * FROM connector._verify_ledger(connector.current_tenant())
UNION ALL
SELECT * FROM connector._verify_positions(connector.current_tenant())
UNION ALL
SELECT * FROM connector._verify_letters(connector.current_tenant())
UNION ALL
SELECT * FROM connector._verify_rows(connector.current_tenant(), strict)
$fn$;
COMMENT ON FUNCTION connector.verify(boolean) IS 'One row for each identity of the ledger, positions, dead letters and tables that does not hold: none, always. strict => true also reports rows that are missing from a table, which is a fault unless somebody deleted them. A lost range is not accounted for: start_offset is where reading began.';
REVOKE ALL ON FUNCTION connector.verify(boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.verify(boolean) TO highwater_operator, highwater_reader;
