-- Secrets: written through SQL and never read back through it. What is stored is sealed to the database's one public key.

CREATE OR REPLACE FUNCTION connector._secret_scope(name text)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._secret_scope(name)
--   The tenant whose secret the name is, once the name is one. A name that is none is not shown: it may be the value.
-- Errors:  22023 no such name can be; 42501 no tenant.
DECLARE
    v_tenant bigint := connector.current_tenant();
BEGIN
    IF name IS NULL OR name !~ '^[A-Za-z0-9._/-]{1,128}$' THEN
        RAISE EXCEPTION 'a secret''s name has 1 to 128 letters, digits and the characters . _ / -, and this one has not'
            USING ERRCODE = '22023', HINT = 'The name comes first, the value second: SELECT connector.secret_set(''ACME_KAFKA_PW'', …);';
    END IF;
    IF v_tenant IS NULL THEN
        RAISE EXCEPTION 'secret "%" would belong to no tenant', name
            USING ERRCODE = '42501', HINT = 'SET app.current_tenant, or have the role listed in connector.tenant_roles.';
    END IF;
    RETURN v_tenant;
END
$fn$;
COMMENT ON FUNCTION connector._secret_scope(text) IS 'Internal: the tenant of a secret''s name.';
REVOKE ALL ON FUNCTION connector._secret_scope(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._seal(prologue text, value text, public_key bytea)
RETURNS bytea
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._seal(prologue, value, public_key)
--   Seals a value inside the server, by pgcrypto wherever it is installed. Taken is only a function that belongs to the extension
--   and is its C code: that, only a superuser can make, so nobody puts a function of theirs in its place to see values.
-- Returns: an OpenPGP message.
-- Errors:  0A000 pgcrypto is not installed, or out of the owner's reach.
DECLARE
    v_data   CONSTANT bytea := convert_to(prologue || value, 'UTF8');
    v_schema text;
    v_sealed bytea;
BEGIN
    SELECT n.nspname INTO v_schema
    FROM pg_extension AS x
    JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = x.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
    JOIN pg_proc AS p ON p.oid = d.objid
    JOIN pg_language AS l ON l.oid = p.prolang
    JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE x.extname = 'pgcrypto' AND p.proname = 'pgp_pub_encrypt_bytea' AND p.prosrc = 'pgp_pub_encrypt_bytea' AND l.lanname = 'c'
        AND oidvectortypes(p.proargtypes) = 'bytea, bytea, text'
        AND has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE');
    IF NOT FOUND THEN
        RAISE EXCEPTION 'pgcrypto is not installed in this database, or highwater_owner may not use it, so only sealed values are taken'
            USING ERRCODE = '0A000',
                  DETAIL = 'Nothing was stored, but the value was in the statement, which the server may have logged.',
                  HINT = 'highwater seal makes a statement with a sealed value; or have the extension installed: CREATE EXTENSION pgcrypto;';
    END IF;
    EXECUTE format('SELECT %I.pgp_pub_encrypt_bytea($1::bytea, $2::bytea, $3::text)', v_schema)
        INTO v_sealed
        USING v_data, public_key, 'cipher-algo=aes256, compress-algo=0';
    RETURN v_sealed;
END
$fn$;
COMMENT ON FUNCTION connector._seal(text, text, bytea) IS 'Internal: seal a value inside the server, with pgcrypto.';
REVOKE ALL ON FUNCTION connector._seal(text, text, bytea) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._unwrap(value text)
RETURNS TABLE (sealed bytea, key_id text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._unwrap(value)
--   Takes apart what highwater seal made: hwseal1: and, in base64, an OpenPGP message that begins with a session key for an RSA
--   key (RFC 4880, 5.1: version 3, the key's id, algorithm 1) and goes on behind it. The packet's length takes one or two octets.
-- Returns: the message and the key's id; no row for anything else.
SELECT d.sealed,
    upper(encode(substr(d.sealed, d.body + 1, 8), 'hex'))
FROM (
    SELECT m.sealed, CASE WHEN get_byte(m.sealed, 1) < 192 THEN 3 WHEN get_byte(m.sealed, 1) < 224 THEN 4 END AS body
    FROM (
        SELECT decode(CASE WHEN length(value) % 4 = 0 AND length(value) BETWEEN 512 AND 98304 AND value ~ '^hwseal1:[A-Za-z0-9+/]+={0,2}$'
            THEN substr(value, 9) END, 'base64') AS sealed) AS m
    WHERE m.sealed IS NOT NULL) AS d
WHERE get_byte(d.sealed, 0) = 193 AND get_byte(d.sealed, d.body - 1) = 3 AND get_byte(d.sealed, d.body + 8) = 1
$fn$;
COMMENT ON FUNCTION connector._unwrap(text) IS 'Internal: the message in a value that highwater seal made, and whom it is sealed to.';
REVOKE ALL ON FUNCTION connector._unwrap(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector.seal_key()
RETURNS TABLE (fingerprint text, key_id text, public_key bytea, tenant_id bigint)
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.seal_key()
--   What highwater seal needs, with an operator's rights: the public key, and the tenant (or NULL) that the value is sealed for.
-- Returns: one row; none before the first sidecar has made the key.
SELECT k.fingerprint, k.key_id, k.public_key, connector.current_tenant() FROM connector._seal_key AS k
$fn$;
COMMENT ON FUNCTION connector.seal_key() IS 'The public key that secrets are sealed to (pgcrypto takes it), its fingerprint, and the session''s tenant: what highwater seal asks. No row before the first sidecar.';
REVOKE ALL ON FUNCTION connector.seal_key() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.seal_key() TO highwater_operator;
