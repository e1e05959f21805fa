-- Secrets: the database's one public key, and values sealed to it.
-- Why: a value that is written can be read back by no SQL; only a sidecar that holds the private key opens it.
-- Locks: none on existing tables (everything is new).
SET LOCAL lock_timeout = '5s';

CREATE TABLE connector._seal_key (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    fingerprint text NOT NULL CHECK (fingerprint ~ '^[0-9A-F]{40}$'),
    key_id      text NOT NULL CHECK (key_id ~ '^[0-9A-F]{16}$'),
    public_key  bytea NOT NULL,
    made_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    made_by     text NOT NULL
);
COMMENT ON TABLE connector._seal_key IS 'At most one row: the OpenPGP public key that secrets are sealed to, its fingerprint, and the id of its subkey, which every sealed value bears.';

CREATE TABLE connector._secret (
    tenant_id  bigint NOT NULL,
    name       text NOT NULL CHECK (name ~ '^[A-Za-z0-9._/-]{1,128}$'),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, name)
);
COMMENT ON TABLE connector._secret IS 'One row a secret of a tenant: its name. What it holds is apart, in connector._secret_value.';

CREATE TABLE connector._secret_value (
    tenant_id bigint NOT NULL,
    name      text NOT NULL,
    sealed    bytea NOT NULL,
    PRIMARY KEY (tenant_id, name)
);
COMMENT ON TABLE connector._secret_value IS 'What each secret holds: an OpenPGP message to the key of connector._seal_key. Granted to nobody.';

ALTER TABLE connector._secret ENABLE ROW LEVEL SECURITY;
ALTER TABLE connector._secret_value ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON connector._secret USING (tenant_id = (SELECT connector.current_tenant()));
CREATE POLICY tenant_isolation ON connector._secret_value USING (tenant_id = (SELECT connector.current_tenant()));
