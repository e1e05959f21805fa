-- What an operator declares: connectors, tenants and scopes; and the first form of connector.current_tenant().
-- Why here: row policies name the function, so it must exist before them; its lasting form is sql/api/tenant.sql.
-- Locks: none on existing tables (everything is new).
SET LOCAL lock_timeout = '5s';

CREATE TABLE connector.tenant_roles (
    role      text PRIMARY KEY,
    tenant_id bigint NOT NULL
);
COMMENT ON TABLE connector.tenant_roles IS 'Which tenant a database role belongs to; a role listed here cannot change its tenant by any setting.';
COMMENT ON COLUMN connector.tenant_roles.role IS 'Name of the login role.';
COMMENT ON COLUMN connector.tenant_roles.tenant_id IS 'The tenant whose connectors and rows this role sees.';

CREATE TABLE connector.scope_roles (
    scope     text NOT NULL,
    role      text NOT NULL,
    tenant_id bigint NOT NULL,
    PRIMARY KEY (tenant_id, scope, role)
);
COMMENT ON TABLE connector.scope_roles IS 'Which database role may read the tables of connectors that declare a scope: SELECT is granted, and revoked when the row goes.';
COMMENT ON COLUMN connector.scope_roles.scope IS 'A scope as written in connector.manifest.scopes.';
COMMENT ON COLUMN connector.scope_roles.role IS 'The role that is granted SELECT; it must exist.';
COMMENT ON COLUMN connector.scope_roles.tenant_id IS 'The tenant whose connectors it is about; default connector.current_tenant(), else 1.';

CREATE TABLE connector._scope_grant (
    connector_id uuid NOT NULL,
    role         text NOT NULL,
    table_name   text NOT NULL,
    PRIMARY KEY (connector_id, role)
);
COMMENT ON TABLE connector._scope_grant IS 'SELECT on connector tables as scopes granted it; a grant that somebody made by hand is not in here and is never revoked.';

CREATE TABLE connector._scope_reach (
    role         text PRIMARY KEY,
    schema_usage boolean NOT NULL,
    card_execute boolean NOT NULL
);
COMMENT ON TABLE connector._scope_reach IS 'Roles that a scope names, and what they were granted beside tables: USAGE on the schema, EXECUTE on connector.card.';

CREATE TABLE connector.manifest (
    name           text PRIMARY KEY,
    connector_type text NOT NULL DEFAULT 'kafka',
    scopes         text[] NOT NULL DEFAULT '{}',
    spec           jsonb NOT NULL,
    tenant_id      bigint NOT NULL,
    connector_id   uuid NOT NULL UNIQUE,
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE connector.manifest IS 'One row declares one connector: a Kafka topic that becomes the table connector.t_<spec.name>. INSERT validates; DELETE erases.';
COMMENT ON COLUMN connector.manifest.name IS 'The connector''s name: [a-z0-9][a-z0-9._-]*, at most 128 bytes; never changes.';
COMMENT ON COLUMN connector.manifest.connector_type IS 'Only kafka is known.';
COMMENT ON COLUMN connector.manifest.scopes IS 'Who may read the table, by connector.scope_roles.';
COMMENT ON COLUMN connector.manifest.spec IS 'The configuration; SELECT * FROM connector.describe() lists every key.';
COMMENT ON COLUMN connector.manifest.tenant_id IS 'The tenant that owns the connector; default connector.current_tenant(), else 1.';
COMMENT ON COLUMN connector.manifest.connector_id IS 'Identity of this declaration; made on INSERT.';
COMMENT ON COLUMN connector.manifest.created_at IS 'When the connector was declared.';
COMMENT ON COLUMN connector.manifest.updated_at IS 'When the row last changed.';

CREATE FUNCTION connector.current_tenant() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $fn$ SELECT NULL::bigint $fn$;

ALTER TABLE connector.manifest ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON connector.manifest
    USING (tenant_id = (SELECT connector.current_tenant()))
    WITH CHECK (tenant_id = (SELECT connector.current_tenant()));

-- By tenant, so that an operator of one cannot open another's tables by naming its scope.
ALTER TABLE connector.scope_roles ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON connector.scope_roles USING (tenant_id = (SELECT connector.current_tenant()));
