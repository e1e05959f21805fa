-- What follows when connector.scope_roles or a manifest's scopes change: grants on tables, and what it takes to reach them.

CREATE OR REPLACE FUNCTION connector._scope_roles_check()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._scope_roles_check()
--   BEFORE INSERT OR UPDATE: fills in the tenant, refuses a blank scope and a role that is not there.
-- Errors:  22023 no scope or no role is named; P0002 no such role.
BEGIN
    NEW.tenant_id := coalesce(NEW.tenant_id, connector.current_tenant(), 1);
    IF coalesce(btrim(NEW.scope), '') = '' OR NEW.role IS NULL THEN
        RAISE EXCEPTION 'a row of connector.scope_roles names a scope and a role'
            USING ERRCODE = '22023', HINT = 'INSERT INTO connector.scope_roles (scope, role) VALUES (''billing'', ''billing_analyst'');';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = NEW.role) THEN
        RAISE EXCEPTION 'role % does not exist', connector._shown(NEW.role)
            USING ERRCODE = 'P0002',
                  HINT = format('Make it first: CREATE ROLE %I; the name is written without quotes, as \du shows it. A scope is given to roles by name, never to PUBLIC.', NEW.role);
    END IF;
    RETURN NEW;
END
$fn$;
COMMENT ON FUNCTION connector._scope_roles_check() IS 'Internal: looks at a row of scope_roles before it is stored.';
REVOKE ALL ON FUNCTION connector._scope_roles_check() FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._reach(role text)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._reach(role)
--   A role that any scope names may look into the schema and call connector.card; one that none names any more loses what
--   was granted here. Membership in our groups is another right and stays as it is.
-- Locks:   connector._scope_reach, so that no two sessions change one catalog row at once.
-- Touches: connector._scope_reach (insert, delete).
DECLARE
    v_role oid := (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = _reach.role);
    v_has  connector._scope_reach;
BEGIN
    LOCK TABLE connector._scope_reach IN SHARE ROW EXCLUSIVE MODE;
    SELECT h.* INTO v_has FROM connector._scope_reach AS h WHERE h.role = _reach.role;
    IF EXISTS (SELECT FROM connector.scope_roles AS s WHERE s.role = _reach.role) THEN
        IF v_has.role IS NOT NULL OR v_role IS NULL THEN
            RETURN;
        END IF;
        v_has.schema_usage := NOT EXISTS (
            SELECT FROM pg_namespace AS n CROSS JOIN aclexplode(n.nspacl) AS x
            WHERE n.nspname = 'connector' AND x.grantee = v_role AND x.privilege_type = 'USAGE');
        v_has.card_execute := NOT EXISTS (
            SELECT FROM pg_proc AS p CROSS JOIN aclexplode(p.proacl) AS x
            WHERE p.oid = 'connector.card(text)'::regprocedure AND x.grantee = v_role);
        INSERT INTO connector._scope_reach (role, schema_usage, card_execute) VALUES (role, v_has.schema_usage, v_has.card_execute);
        IF v_has.schema_usage THEN
            EXECUTE format('GRANT USAGE ON SCHEMA connector TO %I', role);
        END IF;
        IF v_has.card_execute THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION connector.card(text) TO %I', role);
        END IF;
        RETURN;
    END IF;
    DELETE FROM connector._scope_reach AS h WHERE h.role = _reach.role;
    IF v_role IS NOT NULL AND v_has.schema_usage THEN
        EXECUTE format('REVOKE USAGE ON SCHEMA connector FROM %I', role);
    END IF;
    IF v_role IS NOT NULL AND v_has.card_execute THEN
        EXECUTE format('REVOKE EXECUTE ON FUNCTION connector.card(text) FROM %I', role);
    END IF;
END
$fn$;
COMMENT ON FUNCTION connector._reach(text) IS 'Internal: what a role needs to use the tables of its scopes, or no longer.';
REVOKE ALL ON FUNCTION connector._reach(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._scope_roles_follow()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._scope_roles_follow()
--   AFTER INSERT, UPDATE, DELETE or TRUNCATE: the tables of the scopes concerned follow.
-- Locks:   endpoint of each connector concerned, table.
DECLARE
    v_id   uuid;
    v_role text;
BEGIN
    FOR v_id IN
        SELECT m.connector_id
        FROM connector.manifest AS m
        WHERE TG_OP = 'TRUNCATE'
            OR (TG_OP <> 'DELETE' AND m.tenant_id = NEW.tenant_id AND NEW.scope = ANY (m.scopes))
            OR (TG_OP IN ('UPDATE', 'DELETE') AND m.tenant_id = OLD.tenant_id AND OLD.scope = ANY (m.scopes))
        ORDER BY m.connector_id
    LOOP
        PERFORM connector._grant_scopes(v_id);
    END LOOP;
    FOR v_role IN
        SELECT h.role FROM connector._scope_reach AS h WHERE TG_OP = 'TRUNCATE'
        UNION SELECT NEW.role WHERE TG_OP IN ('INSERT', 'UPDATE')
        UNION SELECT OLD.role WHERE TG_OP IN ('UPDATE', 'DELETE')
        ORDER BY 1
    LOOP
        PERFORM connector._reach(v_role);
    END LOOP;
    RETURN NULL;
END
$fn$;
COMMENT ON FUNCTION connector._scope_roles_follow() IS 'Internal: grants and revokes what a change of scope_roles means.';
REVOKE ALL ON FUNCTION connector._scope_roles_follow() FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._manifest_scopes()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._manifest_scopes()
--   AFTER UPDATE of scopes: the grants on the table follow. The lock waits for whoever maps a role just now: neither
--   session would see the other's row otherwise, and the grant would be missed.
-- Locks:   connector.scope_roles (SHARE), endpoint, table.
BEGIN
    LOCK TABLE connector.scope_roles IN SHARE MODE;
    PERFORM connector._grant_scopes(NEW.connector_id);
    RETURN NULL;
END
$fn$;
COMMENT ON FUNCTION connector._manifest_scopes() IS 'Internal: grants and revokes what a change of a manifest''s scopes means.';
REVOKE ALL ON FUNCTION connector._manifest_scopes() FROM PUBLIC;

CREATE OR REPLACE TRIGGER scope_roles_check BEFORE INSERT OR UPDATE ON connector.scope_roles
FOR EACH ROW EXECUTE FUNCTION connector._scope_roles_check();
COMMENT ON TRIGGER scope_roles_check ON connector.scope_roles IS 'Refuses a role that does not exist.';
CREATE OR REPLACE TRIGGER scope_roles_follow AFTER INSERT OR UPDATE OR DELETE ON connector.scope_roles
FOR EACH ROW EXECUTE FUNCTION connector._scope_roles_follow();
COMMENT ON TRIGGER scope_roles_follow ON connector.scope_roles IS 'Grants and revokes SELECT on the tables of the scope.';
CREATE OR REPLACE TRIGGER scope_roles_emptied AFTER TRUNCATE ON connector.scope_roles
FOR EACH STATEMENT EXECUTE FUNCTION connector._scope_roles_follow();
COMMENT ON TRIGGER scope_roles_emptied ON connector.scope_roles IS 'Revokes what all scopes granted.';
CREATE OR REPLACE TRIGGER manifest_scopes AFTER UPDATE ON connector.manifest
FOR EACH ROW WHEN (OLD.scopes IS DISTINCT FROM NEW.scopes) EXECUTE FUNCTION connector._manifest_scopes();
COMMENT ON TRIGGER manifest_scopes ON connector.manifest IS 'Grants and revokes SELECT on the table when its scopes change.';

GRANT SELECT, INSERT, UPDATE, DELETE ON connector.scope_roles TO highwater_operator;
GRANT SELECT ON connector.scope_roles TO highwater_reader;
