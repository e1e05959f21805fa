-- Whose connectors and rows a session sees: the one function that every row policy of the product asks.

CREATE OR REPLACE FUNCTION connector.current_tenant()
RETURNS bigint
LANGUAGE sql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.current_tenant()
--   The tenant this session acts for. A role listed in connector.tenant_roles has that tenant whatever it sets; any other
--   role has the setting app.current_tenant; without either it is tenant 1 while the installation has no other tenant:
--   no connector and no listed role belongs to one.
-- Returns: the tenant, or NULL, which sees nothing: also for a setting that is no bigint, because an error here would
--   fail every query on every connector table, and a fall back to tenant 1 would show it to somebody else.
-- Touches: connector.tenant_roles, connector.manifest (read, past their row security: the function's owner owns them).
-- Policies call it as (SELECT connector.current_tenant()), so that it runs once a query and not once a row.
    SELECT CASE
        WHEN r.role IS NOT NULL THEN r.tenant_id
        WHEN s.setting IS NOT NULL THEN
            CASE
                WHEN s.setting ~ '^[+-]?[0-9]{1,19}$' THEN
                    CASE
                        WHEN s.setting::numeric BETWEEN -9223372036854775808 AND 9223372036854775807 THEN s.setting::bigint
                    END
            END
        WHEN NOT EXISTS (SELECT FROM connector.tenant_roles AS o WHERE o.tenant_id <> 1)
            AND NOT EXISTS (SELECT FROM connector.manifest AS m WHERE m.tenant_id <> 1) THEN 1
    END
    FROM (SELECT nullif(btrim(current_setting('app.current_tenant', true)), '') AS setting) AS s
    LEFT JOIN connector.tenant_roles AS r ON r.role = session_user
$fn$;
COMMENT ON FUNCTION connector.current_tenant() IS 'The tenant of this session: by connector.tenant_roles, else app.current_tenant, else 1 while there is no other, else NULL (sees nothing).';
-- Row policies run with the reader's own rights, and any role may be given a connector table to read.
GRANT EXECUTE ON FUNCTION connector.current_tenant() TO PUBLIC;
