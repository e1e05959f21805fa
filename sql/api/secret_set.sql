-- Setting and dropping secrets, and the list of their names.

CREATE OR REPLACE FUNCTION connector._sealed(tenant_id bigint, name text, value text)
RETURNS bytea
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._sealed(tenant_id, name, value)
--   What is stored for a value: the message that highwater seal made, as it is, or the value sealed here. Both are bound to the
--   tenant and the name. The key is locked, so that no rotation misses a value that was sealed to the old one.
-- Errors:  55000 there is no key yet; 22023 blank, too long, no sealed value, or sealed to another key; 0A000 see _seal.
-- Locks:   seal_key (share).
DECLARE
    v_key    connector._seal_key;
    v_sealed bytea;
    v_to     text;
BEGIN
    IF value IS NULL OR value !~ '[^[:space:]]' THEN
        RAISE EXCEPTION 'the value of secret "%" is blank', name
            USING ERRCODE = '22023', HINT = format('To forget a secret: SELECT connector.secret_drop(%L);', name);
    END IF;
    SELECT k.* INTO v_key FROM connector._seal_key AS k FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'secrets have no key in this database yet'
            USING ERRCODE = '55000', HINT = 'The first sidecar makes it; start one: highwater serve';
    END IF;
    IF value LIKE 'hwseal1:%' THEN
        SELECT u.sealed, u.key_id INTO v_sealed, v_to FROM connector._unwrap(value) AS u;
        IF v_to IS DISTINCT FROM v_key.key_id THEN
            RAISE EXCEPTION 'the value of secret "%" is %', name,
                CASE WHEN v_to IS NULL THEN 'not what highwater seal makes, or was cut' ELSE format('sealed to key %s, and the key is %s', v_to, v_key.key_id) END
                USING ERRCODE = '22023', HINT = format('Seal it for this database: highwater seal %s', name);
        END IF;
        RETURN v_sealed;
    END IF;
    IF octet_length(convert_to(value, 'UTF8')) > 65536 THEN
        RAISE EXCEPTION 'the value of secret "%" has % bytes, more than 65536', name, octet_length(convert_to(value, 'UTF8'))
            USING ERRCODE = '22023', HINT = 'A secret is a password or a PEM text, and none of these is that long.';
    END IF;
    v_sealed := connector._seal(concat_ws(E'\n', 'highwater secret 1', tenant_id, name, ''), value, v_key.public_key);
    RAISE WARNING 'the value of secret "%" came in plain text: the statement may have been logged, or seen in pg_stat_activity', name
        USING HINT = format('Better give it sealed, and a new value: highwater seal %s', name);
    RETURN v_sealed;
END
$fn$;
COMMENT ON FUNCTION connector._sealed(bigint, text, text) IS 'Internal: what is stored for a secret''s value.';
REVOKE ALL ON FUNCTION connector._sealed(bigint, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector.secret_set(name text, value text)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.secret_set(name, value)
--   Stores a secret of the session's tenant, or replaces its value. Manifests name it in their *_env keys; it is looked up when
--   a run starts. A value from highwater seal (hwseal1:…) is stored as it is; any other is sealed here, with a warning.
-- Errors:  22023 a bad name or value; 55000 no key yet; 0A000 plain text without pgcrypto; 42501 no tenant.
-- Locks:   seal_key (share), secret.
-- Touches: connector._secret, connector._secret_value (upsert), connector._audit.
DECLARE
    v_tenant bigint := connector._secret_scope(name);
    v_sealed bytea := connector._sealed(v_tenant, name, value);
BEGIN
    INSERT INTO connector._secret (tenant_id, name)
    VALUES (v_tenant, secret_set.name)
    ON CONFLICT ON CONSTRAINT _secret_pkey DO UPDATE SET updated_at = clock_timestamp();
    INSERT INTO connector._secret_value (tenant_id, name, sealed)
    VALUES (v_tenant, secret_set.name, v_sealed)
    ON CONFLICT ON CONSTRAINT _secret_value_pkey DO UPDATE SET sealed = excluded.sealed;
    PERFORM connector._audit('secret_set', NULL, v_tenant, jsonb_build_object('name', name, 'came_sealed', value LIKE 'hwseal1:%'));
END
$fn$;
COMMENT ON FUNCTION connector.secret_set(text, text) IS 'Store a secret that *_env keys of manifests can name. It can never be read back through SQL; take the value from highwater seal, so that no plain text reaches a statement.';
REVOKE ALL ON FUNCTION connector.secret_set(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.secret_set(text, text) TO highwater_operator;

CREATE OR REPLACE FUNCTION connector.secret_drop(name text)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.secret_drop(name)
--   Forgets a secret of the session's tenant. A run that has started keeps what it looked up; later ones find the sidecar's
--   environment, or nothing.
-- Errors:  22023 a bad name; P0002 no such secret, or another tenant's; 42501 no tenant.
-- Locks:   seal_key (share): a rotation locks the values alone, in another order; secret.
-- Touches: connector._secret, connector._secret_value (delete), connector._audit.
DECLARE
    v_tenant bigint := connector._secret_scope(name);
BEGIN
    PERFORM FROM connector._seal_key AS k FOR SHARE;
    DELETE FROM connector._secret AS s WHERE s.tenant_id = v_tenant AND s.name = secret_drop.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'secret "%" does not exist', name
            USING ERRCODE = 'P0002', HINT = 'List the names: SELECT name FROM connector.secrets;';
    END IF;
    DELETE FROM connector._secret_value AS s WHERE s.tenant_id = v_tenant AND s.name = secret_drop.name;
    PERFORM connector._audit('secret_drop', NULL, v_tenant, jsonb_build_object('name', name));
END
$fn$;
COMMENT ON FUNCTION connector.secret_drop(text) IS 'Forget a secret; runs that start later find the sidecar''s environment, or nothing.';
REVOKE ALL ON FUNCTION connector.secret_drop(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.secret_drop(text) TO highwater_operator;

CREATE OR REPLACE VIEW connector.secrets WITH (security_invoker = on) AS
SELECT s.name,
    s.tenant_id,
    s.updated_at
FROM connector._secret AS s;
COMMENT ON VIEW connector.secrets IS 'The names of the stored secrets; a value can be read by no SQL.';
COMMENT ON COLUMN connector.secrets.name IS 'What *_env keys of manifests name.';
COMMENT ON COLUMN connector.secrets.tenant_id IS 'The tenant whose connectors find it.';
COMMENT ON COLUMN connector.secrets.updated_at IS 'When it was last set; a rotation of the key is no change of it.';
GRANT SELECT ON connector._secret TO highwater_operator, highwater_reader;
GRANT SELECT ON connector.secrets TO highwater_operator, highwater_reader;
