-- Rules of the connection: names of secrets, authentication, TLS.

CREATE OR REPLACE FUNCTION connector._check_env(spec jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_env(spec)
--   Every *_env key holds a name. What does not look like one is refused without being shown: it may be the credential
--   itself, which would then stand in the manifest for all to read.
    SELECT 'ERROR', 'spec.' || k.key, format('%s must be a name, not a value: letters, digits, dots, underscores, hyphens and slashes, at most 128', k.key),
        'Store the value under a name with connector.secret_set, or in the sidecar''s environment, and give the name.'
    FROM connector._spec_keys() AS k
    WHERE k.key LIKE '%\_env' AND connector._text_at(_check_env.spec, k.key) !~ '^[A-Za-z0-9._/-]{1,128}$'
$fn$;
COMMENT ON FUNCTION connector._check_env(jsonb) IS 'Findings about keys that must hold a name.';
REVOKE ALL ON FUNCTION connector._check_env(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._connection(spec jsonb)
RETURNS TABLE (kind text, sasl boolean, protocol text, enabled boolean, uses_tls boolean)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._connection(spec)
--   What auth and tls come to once defaults are filled in. sasl and uses_tls are NULL where a value that decides them
--   is itself an error, so that no rule judges on it.
    SELECT c.kind, c.sasl, c.protocol, c.enabled,
        CASE WHEN c.enabled IS NOT NULL THEN c.enabled WHEN c.sasl THEN c.protocol = 'SASL_SSL' ELSE c.sasl END
    FROM (
        SELECT a.kind,
            CASE WHEN a.kind = 'none' THEN false WHEN a.kind IN ('sasl-plain', 'sasl-scram-sha-256', 'sasl-scram-sha-512') THEN true END AS sasl,
            CASE WHEN NOT a.given_protocol THEN 'SASL_SSL' WHEN a.protocol IN ('SASL_SSL', 'SASL_PLAINTEXT') THEN a.protocol END AS protocol,
            a.enabled
        FROM (SELECT
            CASE WHEN _connection.spec #> '{auth,kind}' IS NULL THEN 'none' ELSE connector._text_at(_connection.spec, 'auth.kind') END AS kind,
            _connection.spec #> '{auth,security_protocol}' IS NOT NULL AS given_protocol,
            connector._text_at(_connection.spec, 'auth.security_protocol') AS protocol,
            CASE WHEN jsonb_typeof(_connection.spec #> '{tls,enabled}') = 'boolean' THEN (_connection.spec #> '{tls,enabled}')::boolean END AS enabled
        ) AS a
    ) AS c
$fn$;
COMMENT ON FUNCTION connector._connection(jsonb) IS 'Authentication and TLS of a spec, defaults filled in.';
REVOKE ALL ON FUNCTION connector._connection(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._check_auth(spec jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_auth(spec)
--   A SASL mechanism needs both names; without one they are read by nothing.
    SELECT 'ERROR', 'spec.auth.' || k.key, format('auth.kind %s requires auth.%s', c.kind, k.key),
        'Give the name of the secret or environment variable that holds it, never the value.'
    FROM connector._connection(_check_auth.spec) AS c
    CROSS JOIN unnest('{username_env,password_env}'::text[]) AS k (key)
    WHERE c.sasl AND NOT coalesce(_check_auth.spec -> 'auth' ? k.key, false)
    UNION ALL
    SELECT 'WARN', 'spec.auth.' || k.key, format('auth.%s is not read without a SASL mechanism', k.key),
        'Set spec.auth.kind to sasl-plain, sasl-scram-sha-256 or sasl-scram-sha-512, or remove the key.'
    FROM connector._connection(_check_auth.spec) AS c
    CROSS JOIN unnest('{username_env,password_env,security_protocol}'::text[]) AS k (key)
    WHERE NOT c.sasl AND jsonb_typeof(_check_auth.spec -> 'auth') = 'object' AND _check_auth.spec -> 'auth' ? k.key
    UNION ALL
    SELECT 'WARN', 'spec.auth.security_protocol', 'the password crosses the network readable: sasl-plain over SASL_PLAINTEXT',
        'Use SASL_SSL, or a scram mechanism, where the broker offers it.'
    FROM connector._connection(_check_auth.spec) AS c
    WHERE c.kind = 'sasl-plain' AND c.protocol = 'SASL_PLAINTEXT'
$fn$;
COMMENT ON FUNCTION connector._check_auth(jsonb) IS 'Findings about authentication.';
REVOKE ALL ON FUNCTION connector._check_auth(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._check_tls(spec jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_tls(spec)
--   tls.enabled agrees with auth.security_protocol; PEM keys need TLS on, a certificate needs its key; files are refused.
    SELECT 'ERROR', 'spec.tls.' || btrim(connector._shown(p.key), '"'), 'files are not read: none is mounted beside a sidecar',
        CASE
            WHEN regexp_replace(p.key, '(_pem)?_file$', '') IN ('ca', 'cert', 'key') THEN
                format('Store the PEM text as a secret and name it in spec.tls.%s_pem_env.', regexp_replace(p.key, '(_pem)?_file$', ''))
            ELSE 'Store the PEM text as a secret and name it in spec.tls.ca_pem_env, cert_pem_env or key_pem_env.'
        END
    FROM connector._pairs(_check_tls.spec -> 'tls') AS p
    WHERE p.key LIKE '%\_file'
    UNION ALL
    SELECT f.severity, f.path, f.message, f.hint
    FROM connector._connection(_check_tls.spec) AS c
    CROSS JOIN LATERAL (SELECT CASE WHEN jsonb_typeof(_check_tls.spec -> 'tls') = 'object' THEN _check_tls.spec -> 'tls' ELSE '{}' END AS tls) AS t
    CROSS JOIN LATERAL (VALUES
        ('ERROR', 'spec.tls.enabled', 'tls.enabled is false, but auth uses SASL_SSL',
            'Remove tls.enabled, or set spec.auth.security_protocol to SASL_PLAINTEXT.',
            c.sasl AND c.protocol = 'SASL_SSL' AND NOT c.enabled),
        ('ERROR', 'spec.tls.enabled', 'tls.enabled is true, but auth uses SASL_PLAINTEXT',
            'Set spec.auth.security_protocol to SASL_SSL, or remove tls.enabled.',
            c.sasl AND c.protocol = 'SASL_PLAINTEXT' AND c.enabled),
        ('ERROR', 'spec.tls.key_pem_env', 'tls.cert_pem_env is given without tls.key_pem_env',
            'A client certificate needs its key: give both names.',
            t.tls ? 'cert_pem_env' AND NOT t.tls ? 'key_pem_env'),
        ('ERROR', 'spec.tls.cert_pem_env', 'tls.key_pem_env is given without tls.cert_pem_env',
            'A client key needs its certificate: give both names.',
            t.tls ? 'key_pem_env' AND NOT t.tls ? 'cert_pem_env'),
        ('ERROR', 'spec.tls.ca_pem_env', 'tls.ca_pem_env needs TLS on', 'Set spec.tls.enabled to true.', t.tls ? 'ca_pem_env' AND NOT c.uses_tls),
        ('ERROR', 'spec.tls.cert_pem_env', 'tls.cert_pem_env needs TLS on', 'Set spec.tls.enabled to true.', t.tls ? 'cert_pem_env' AND NOT c.uses_tls),
        ('ERROR', 'spec.tls.key_pem_env', 'tls.key_pem_env needs TLS on', 'Set spec.tls.enabled to true.', t.tls ? 'key_pem_env' AND NOT c.uses_tls),
        ('WARN', 'spec.tls.server_name', 'tls.server_name is not read while TLS is off', 'Set spec.tls.enabled to true, or remove it.',
            t.tls ? 'server_name' AND NOT c.uses_tls),
        ('ERROR', 'spec.tls.server_name', 'tls.server_name must be a host name or an address, without a port',
            'Write the name in the certificate, e.g. broker.example.com.',
            connector._text_at(_check_tls.spec, 'tls.server_name') !~ '^[A-Za-z0-9]([A-Za-z0-9._-]{0,252})$'
            AND NOT connector._is_ipv6(connector._text_at(_check_tls.spec, 'tls.server_name')))
    ) AS f (severity, path, message, hint, holds)
    WHERE f.holds
$fn$;
COMMENT ON FUNCTION connector._check_tls(jsonb) IS 'Findings about TLS.';
REVOKE ALL ON FUNCTION connector._check_tls(jsonb) FROM PUBLIC;
