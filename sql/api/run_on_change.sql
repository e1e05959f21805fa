-- A run whenever an application's own table changes.

CREATE OR REPLACE FUNCTION connector.run_on_change()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.run_on_change(name)
--   Trigger function: asks for a run of the named connector (if_active 'wait'), in the transaction that changed the table:
--     CREATE TRIGGER ... AFTER INSERT ON my_table FOR EACH STATEMENT EXECUTE FUNCTION connector.run_on_change('name');
--   Many statements in one transaction make one run; a trigger on the connector's own table ends by itself, with the run
--   that finds nothing new. The role that changes the table needs no right here: the trigger is the word of the table's
--   owner, and it is the owner's tenant that must be the connector's (an owner that connector.tenant_roles does not list
--   may name any).
-- Errors:  39P01 not AFTER or not FOR EACH STATEMENT; 22023 not exactly one argument; P0002 no such connector.
-- Touches: connector._run (insert), the queue.
DECLARE
    v_example text := format('Write: CREATE TRIGGER %I AFTER INSERT ON %I.%I FOR EACH STATEMENT EXECUTE FUNCTION connector.run_on_change(%L);',
        TG_NAME, TG_TABLE_SCHEMA, TG_TABLE_NAME, coalesce(TG_ARGV[0], 'name'));
BEGIN
    IF TG_WHEN <> 'AFTER' OR TG_LEVEL <> 'STATEMENT' THEN
        RAISE EXCEPTION 'trigger "%" must be AFTER and FOR EACH STATEMENT', TG_NAME USING ERRCODE = '39P01', HINT = v_example;
    END IF;
    IF TG_NARGS <> 1 THEN
        RAISE EXCEPTION 'trigger "%" must name exactly one connector', TG_NAME USING ERRCODE = '22023', HINT = v_example;
    END IF;
    PERFORM
    FROM connector.manifest AS m
    JOIN pg_class AS c ON c.oid = TG_RELID
    LEFT JOIN connector.tenant_roles AS t ON t.role = pg_get_userbyid(c.relowner)
    WHERE m.name = TG_ARGV[0] AND m.tenant_id = coalesce(t.tenant_id, m.tenant_id);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'connector "%" does not exist', TG_ARGV[0]
            USING ERRCODE = 'P0002',
                  DETAIL  = format('Trigger "%s" on table %I.%I names it.', TG_NAME, TG_TABLE_SCHEMA, TG_TABLE_NAME),
                  HINT    = format('Declare it, or: DROP TRIGGER %I ON %I.%I;', TG_NAME, TG_TABLE_SCHEMA, TG_TABLE_NAME);
    END IF;
    PERFORM connector._run(TG_ARGV[0], 'wait', 'trigger');
    RETURN NULL;
END
$fn$;
COMMENT ON FUNCTION connector.run_on_change() IS 'Trigger function: start a run of the connector named in its argument when a table changes. CREATE TRIGGER t AFTER INSERT ON my_table FOR EACH STATEMENT EXECUTE FUNCTION connector.run_on_change(''name'').';
REVOKE ALL ON FUNCTION connector.run_on_change() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.run_on_change() TO highwater_operator;
