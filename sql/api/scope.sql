-- Scopes: who may read a connector's table, by connector.scope_roles. Only what was granted here is ever revoked here, so
-- that grants which people made by hand stay: connector._scope_grant and _scope_reach remember it.

CREATE OR REPLACE FUNCTION connector._scope_table(table_name text)
RETURNS oid
LANGUAGE sql
STABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._scope_table(table_name)
--   The table of that name that a connector made; NULL where there is none, or another's relation in its place.
    SELECT c.oid
    FROM pg_class AS c
    WHERE c.relnamespace = 'connector'::regnamespace AND c.relname = _scope_table.table_name
        AND c.relkind IN ('r', 'p') AND c.relowner = to_regrole('highwater_owner')
$fn$;
COMMENT ON FUNCTION connector._scope_table(text) IS 'Internal: the table that a connector made, or null.';
REVOKE ALL ON FUNCTION connector._scope_table(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._share(held connector._endpoint, role text)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._share(held, role)
--   Grants SELECT on a connector's table to a role and remembers it; nothing where the role has it by name already.
-- Locks:   table, against a chunk that alters it: two changes of a table's catalog row at once are an error.
-- Touches: connector._scope_grant, connector._audit (insert).
DECLARE
    v_table oid := connector._scope_table(held.table_name);
BEGIN
    IF v_table IS NULL OR EXISTS (
        SELECT FROM pg_class AS c
        CROSS JOIN aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS x
        WHERE c.oid = v_table AND x.grantee = (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = _share.role) AND x.privilege_type = 'SELECT') THEN
        RETURN;
    END IF;
    EXECUTE format('LOCK TABLE ONLY connector.%I IN SHARE UPDATE EXCLUSIVE MODE', held.table_name);
    EXECUTE format('GRANT SELECT ON TABLE connector.%I TO %I', held.table_name, role);
    INSERT INTO connector._scope_grant AS g (connector_id, role, table_name)
    VALUES (held.connector_id, role, held.table_name)
    ON CONFLICT ON CONSTRAINT _scope_grant_pkey DO UPDATE SET table_name = excluded.table_name;
    PERFORM connector._audit('share', held.connector, held.tenant_id, jsonb_build_object('table', held.table_name, 'role', role));
END
$fn$;
COMMENT ON FUNCTION connector._share(connector._endpoint, text) IS 'Internal: grants a connector''s table to a role.';
REVOKE ALL ON FUNCTION connector._share(connector._endpoint, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._unshare(held connector._endpoint, role text)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._unshare(held, role)
--   Takes back what _share granted, and forgets it. A right that somebody has since given WITH GRANT OPTION is theirs.
-- Locks:   table, as _share.
-- Touches: connector._scope_grant (delete), connector._audit (insert).
DECLARE
    v_granted text;
BEGIN
    DELETE FROM connector._scope_grant AS g
    WHERE g.connector_id = held.connector_id AND g.role = _unshare.role
    RETURNING g.table_name INTO v_granted;
    PERFORM
    FROM pg_class AS c
    CROSS JOIN aclexplode(c.relacl) AS x
    JOIN pg_roles AS r ON r.oid = x.grantee
    WHERE c.oid = connector._scope_table(v_granted) AND r.rolname = _unshare.role AND x.privilege_type = 'SELECT' AND NOT x.is_grantable;
    IF FOUND THEN
        EXECUTE format('LOCK TABLE ONLY connector.%I IN SHARE UPDATE EXCLUSIVE MODE', v_granted);
        EXECUTE format('REVOKE SELECT ON TABLE connector.%I FROM %I', v_granted, role);
        PERFORM connector._audit('unshare', held.connector, held.tenant_id, jsonb_build_object('table', v_granted, 'role', role));
    END IF;
END
$fn$;
COMMENT ON FUNCTION connector._unshare(connector._endpoint, text) IS 'Internal: revokes what a scope granted to a role.';
REVOKE ALL ON FUNCTION connector._unshare(connector._endpoint, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._grant_scopes(connector_id uuid)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._grant_scopes(connector_id)
--   Makes the grants on a connector's table those that its scopes say: called by the chunk that makes the table and by
--   whatever changes scopes or their roles. Whoever comes second waits for the endpoint and sees the first one's change.
-- Locks:   endpoint, table.
-- Touches: connector._scope_grant, connector._audit.
DECLARE
    v_held connector._endpoint;
    v_role record;
BEGIN
    SELECT e.* INTO v_held FROM connector._endpoint AS e WHERE e.connector_id = _grant_scopes.connector_id FOR UPDATE;
    IF NOT FOUND OR NOT v_held.table_made THEN
        RETURN;
    END IF;
    FOR v_role IN
        SELECT coalesce(w.role, g.role) AS role, w.role IS NOT NULL AS wanted
        FROM (
            SELECT DISTINCT s.role
            FROM connector.manifest AS m
            JOIN connector.scope_roles AS s ON s.tenant_id = m.tenant_id AND s.scope = ANY (m.scopes)
            JOIN pg_roles AS r ON r.rolname = s.role
            WHERE m.connector_id = _grant_scopes.connector_id) AS w
        FULL JOIN (SELECT h.role FROM connector._scope_grant AS h WHERE h.connector_id = _grant_scopes.connector_id) AS g ON g.role = w.role
        ORDER BY 1
    LOOP
        IF v_role.wanted THEN
            PERFORM connector._share(v_held, v_role.role);
        ELSE
            PERFORM connector._unshare(v_held, v_role.role);
        END IF;
    END LOOP;
END
$fn$;
COMMENT ON FUNCTION connector._grant_scopes(uuid) IS 'Internal: makes the grants on a connector''s table those that its scopes say.';
REVOKE ALL ON FUNCTION connector._grant_scopes(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._revoke_scopes(held connector._endpoint)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._revoke_scopes(held)
--   Takes back every grant of a connector's scopes: its table is about to belong to it no more.
DECLARE
    v_role text;
BEGIN
    FOR v_role IN SELECT g.role FROM connector._scope_grant AS g WHERE g.connector_id = held.connector_id ORDER BY g.role LOOP
        PERFORM connector._unshare(held, v_role);
    END LOOP;
END
$fn$;
COMMENT ON FUNCTION connector._revoke_scopes(connector._endpoint) IS 'Internal: takes back every grant of a connector''s scopes.';
REVOKE ALL ON FUNCTION connector._revoke_scopes(connector._endpoint) FROM PUBLIC;
