-- Which connector writes which table: taken when it is declared, given up when it is renamed, dropped when it is deleted.

CREATE OR REPLACE FUNCTION connector._relation_names(table_name text)
RETURNS text[]
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._relation_names(table_name)
--   Every relation that comes with a connector's table: itself, its sequence, its three indexes.
    SELECT ARRAY[_relation_names.table_name, _relation_names.table_name || '_id_seq', _relation_names.table_name || '_pkey',
        _relation_names.table_name || '__row_hash_key', _relation_names.table_name || '_idx_tenant_id']
$fn$;
COMMENT ON FUNCTION connector._relation_names(text) IS 'Internal: the relations that come with a connector''s table.';
REVOKE ALL ON FUNCTION connector._relation_names(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._take_table(name text, table_name text, tenant_id bigint, connector_id uuid)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._take_table(name, table_name, tenant_id, connector_id)
--   Refuses a table whose name, or the name of one of its indexes, is taken: by a relation that exists, or by the table
--   of another connector, made or not. Only a connector of the same tenant is named.
-- Errors:  22023 the name is taken.
DECLARE
    v_names text[] := connector._relation_names(table_name);
    v_owner record;
BEGIN
    SELECT e.connector, e.tenant_id INTO v_owner
    FROM connector._endpoint AS e
    WHERE e.connector_id <> _take_table.connector_id AND connector._relation_names(e.table_name) && v_names
    LIMIT 1;
    IF NOT FOUND
        AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.relnamespace = 'connector'::regnamespace AND c.relname = ANY (v_names))
        AND NOT EXISTS (SELECT FROM pg_type AS t WHERE t.typnamespace = 'connector'::regnamespace AND t.typname = _take_table.table_name) THEN
        RETURN;
    END IF;
    PERFORM connector._refuse(name, jsonb_build_array(jsonb_build_object('severity', 'ERROR', 'path', 'spec.name',
        'message', CASE
            WHEN v_owner.tenant_id = _take_table.tenant_id THEN
                format('the table connector.%s is taken by connector %s', table_name, connector._shown(v_owner.connector))
            ELSE format('the table connector.%s, or the name of one of its indexes, is taken', table_name)
        END,
        'hint', 'Choose another spec.name; one connector writes one table.')));
END
$fn$;
COMMENT ON FUNCTION connector._take_table(text, text, bigint, uuid) IS 'Internal: refuses a table name that is taken.';
REVOKE ALL ON FUNCTION connector._take_table(text, text, bigint, uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._detach_table(name text, connector_id uuid, tenant_id bigint, new_table text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._detach_table(name, connector_id, tenant_id, new_table)
--   Points a connector at another table. The one it wrote until now keeps its rows and belongs to no connector any more.
-- Touches: connector._endpoint (update), connector._column (delete), connector._scope_grant, connector._audit.
DECLARE
    v_held connector._endpoint;
BEGIN
    SELECT e.* INTO v_held FROM connector._endpoint AS e WHERE e.connector_id = _detach_table.connector_id FOR UPDATE;
    PERFORM connector._revoke_scopes(v_held);
    UPDATE connector._endpoint AS e
    SET table_name = _detach_table.new_table, table_made = false, data_as_of = NULL
    WHERE e.connector_id = _detach_table.connector_id;
    DELETE FROM connector._column AS c WHERE c.connector_id = _detach_table.connector_id;
    IF v_held.table_made THEN
        PERFORM connector._audit('detach', name, tenant_id, jsonb_build_object('table', v_held.table_name, 'next_table', new_table));
        RAISE WARNING 'table connector.% keeps its rows and belongs to no connector any more', quote_ident(v_held.table_name)
            USING HINT = 'Drop it as its owner if it is not needed: the connector fills ' || quote_ident(new_table) || ' from its next run on.';
    END IF;
END
$fn$;
COMMENT ON FUNCTION connector._detach_table(text, uuid, bigint, text) IS 'Internal: points a connector at another table.';
REVOKE ALL ON FUNCTION connector._detach_table(text, uuid, bigint, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._drop_table(name text, table_name text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._drop_table(name, table_name)
--   Drops a connector's table. One that somebody put in its place, owned by another role or no ordinary table, is kept.
-- Returns: whether there was a table to drop.
-- Errors:  2BP01 something depends on it.
DECLARE
    v_relation record;
    v_detail   text;
BEGIN
    SELECT c.relkind, pg_get_userbyid(c.relowner) AS owner INTO v_relation
    FROM pg_class AS c
    WHERE c.relnamespace = 'connector'::regnamespace AND c.relname = _drop_table.table_name;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF v_relation.relkind NOT IN ('r', 'p') OR v_relation.owner <> 'highwater_owner' THEN
        RAISE WARNING 'connector.% is kept: it is not the table that connector % made', quote_ident(table_name), connector._shown(name)
            USING HINT = 'Its owner may drop it.';
        RETURN false;
    END IF;
    EXECUTE format('DROP TABLE connector.%I RESTRICT', table_name);
    RETURN true;
EXCEPTION
    WHEN dependent_objects_still_exist THEN
        GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
        RAISE EXCEPTION 'connector % cannot be deleted: other objects depend on its table connector.%', connector._shown(name), quote_ident(table_name)
            USING ERRCODE = '2BP01',
                  DETAIL = v_detail,
                  HINT = format('Drop them first, or keep the table: SELECT connector.drop(%L, keep_table => true);', name);
END
$fn$;
COMMENT ON FUNCTION connector._drop_table(text, text) IS 'Internal: drops a connector''s table.';
REVOKE ALL ON FUNCTION connector._drop_table(text, text) FROM PUBLIC;
