-- Every key of a connector's spec, once: the validator, connector.describe() and the documentation read this table.

CREATE OR REPLACE FUNCTION connector._spec_keys()
RETURNS TABLE (key text, required boolean, type text, importance text, default_value text, meaning text,
    min_value bigint, max_value bigint, allowed text[], fixed boolean)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._spec_keys()
--   The closed list of keys, nested ones written parent.key, in the order in which findings and descriptions name them.
-- Returns: allowed: the words a STRING or LIST may hold, or the word a LONG may hold instead of a number;
--   min_value, max_value: the range of a LONG; fixed: cannot change while the connector has stored positions.
    SELECT * FROM (VALUES
    ('name', true, 'STRING', 'HIGH', NULL, 'The table: connector.t_<name>. Letters, digits and underscores, not starting with a digit, at most 40 bytes', NULL::bigint, NULL::bigint, NULL::text[], true),
    ('brokers', false, 'STRING', 'HIGH', NULL, 'Bootstrap brokers, host:port separated by commas; this or brokers_env', NULL, NULL, NULL, false),
    ('brokers_env', false, 'STRING', 'HIGH', NULL, 'Name of the secret or environment variable that holds the bootstrap brokers', NULL, NULL, NULL, false),
    ('topic', true, 'STRING', 'HIGH', NULL, 'The topic to read; one a connector', NULL, NULL, NULL, true),
    ('format', false, 'STRING', 'MEDIUM', 'json', 'What a message value is: a JSON object, or bytes that are kept whole in the column payload (raw)', NULL, NULL, '{json,raw}', true),
    ('poll_timeout_ms', false, 'LONG', 'LOW', '2000', 'Milliseconds of silence below the target after which the broker is asked what lies there', 100, 60000, NULL, false),
    ('max_poll_records', false, 'LONG', 'LOW', NULL, 'Messages in a transaction, never more than 500 whatever is given; not together with chunk_rows', 1, 2147483647, NULL, false),
    ('chunk_rows', false, 'LONG', 'LOW', 'auto', 'Messages in a transaction; auto begins with 500 and doubles up to 10,000 while the run is behind', 1, 50000, '{auto}', false),
    ('chunk_bytes', false, 'LONG', 'LOW', '16777216', 'Bytes of message values in a transaction', 65536, 67108864, NULL, false),
    ('max_message_bytes', false, 'LONG', 'LOW', '33554432', 'Bytes of one message value; a larger one becomes a dead letter, TooLarge', 1024, 67108864, NULL, false),
    ('stall_timeout_ms', false, 'LONG', 'LOW', '60000', 'Milliseconds without any movement after which the run ends, Failed or Partial', 5000, 3600000, NULL, false),
    ('poison_chunks', false, 'LONG', 'LOW', '20', 'Chunks in a row without one good message after which the run stops, Partial', 1, 10000, NULL, false),
    ('client_id', false, 'STRING', 'LOW', 'highwater', 'The client name that the broker logs show', NULL, NULL, NULL, false),
    ('isolation', false, 'STRING', 'MEDIUM', 'read_committed', 'read_uncommitted also reads records of open and aborted transactions', NULL, NULL, '{read_committed,read_uncommitted}', false),
    ('start_position', false, 'STRING', 'MEDIUM', 'earliest', 'Where a connector without positions starts: earliest, latest, or an RFC 3339 time', NULL, NULL, NULL, false),
    ('read', false, 'STRING', 'HIGH', 'catch_up', 'catch_up: from the position to the head; full: the whole retained window, positions untouched; continuous: without end', NULL, NULL, '{catch_up,full,continuous}', false),
    ('on_lost', false, 'STRING', 'MEDIUM', 'partial', 'When the broker no longer has offsets that were not yet read: go on and end Partial, or fail', NULL, NULL, '{partial,fail}', false),
    ('schedule', false, 'STRING', 'MEDIUM', NULL, 'Five-field cron, evaluated in UTC, that starts catch-up runs', NULL, NULL, NULL, false),
    ('window', false, 'STRING', 'MEDIUM', NULL, 'HH:MM-HH:MM in UTC, end exclusive: scheduled runs start only inside it', NULL, NULL, NULL, false),
    ('auth', false, 'NESTED', 'MEDIUM', NULL, 'How to authenticate to the broker; without it there is no SASL handshake', NULL, NULL, NULL, false),
    ('auth.kind', false, 'STRING', 'HIGH', 'none', 'The SASL mechanism', NULL, NULL, '{none,sasl-plain,sasl-scram-sha-256,sasl-scram-sha-512}', false),
    ('auth.username_env', false, 'STRING', 'HIGH', NULL, 'Name of the secret or environment variable that holds the user name', NULL, NULL, NULL, false),
    ('auth.password_env', false, 'STRING', 'HIGH', NULL, 'Name of the secret or environment variable that holds the password', NULL, NULL, NULL, false),
    ('auth.security_protocol', false, 'STRING', 'MEDIUM', 'SASL_SSL', 'SASL over TLS (SASL_SSL), or over plain TCP', NULL, NULL, '{SASL_SSL,SASL_PLAINTEXT}', false),
    ('tls', false, 'NESTED', 'MEDIUM', NULL, 'TLS to the broker; certificates are always verified', NULL, NULL, NULL, false),
    ('tls.enabled', false, 'BOOLEAN', 'HIGH', 'false', 'Whether to use TLS; true where auth uses SASL_SSL', NULL, NULL, NULL, false),
    ('tls.ca_pem_env', false, 'STRING', 'MEDIUM', NULL, 'Name of the secret that holds the CA certificates as PEM text; default: the roots of the sidecar''s system', NULL, NULL, NULL, false),
    ('tls.cert_pem_env', false, 'STRING', 'MEDIUM', NULL, 'Name of the secret that holds the client certificate as PEM text', NULL, NULL, NULL, false),
    ('tls.key_pem_env', false, 'STRING', 'MEDIUM', NULL, 'Name of the secret that holds the client key as PEM text', NULL, NULL, NULL, false),
    ('tls.server_name', false, 'STRING', 'LOW', NULL, 'The name that the broker certificate is checked against', NULL, NULL, NULL, false),
    ('preset', false, 'STRING', 'LOW', NULL, 'A vendor''s settings, expanded when the manifest is stored', NULL, NULL, '{event-hubs,confluent-cloud,msk-scram}', false),
    ('namespace', false, 'STRING', 'LOW', NULL, 'Input of preset event-hubs: the namespace, without .servicebus.windows.net', NULL, NULL, NULL, false),
    ('connection_string_env', false, 'STRING', 'LOW', NULL, 'Input of preset event-hubs: name of the secret that holds the connection string', NULL, NULL, NULL, false),
    ('bootstrap', false, 'STRING', 'LOW', NULL, 'Input of presets confluent-cloud and msk-scram: bootstrap brokers, host:port separated by commas', NULL, NULL, NULL, false),
    ('api_key_env', false, 'STRING', 'LOW', NULL, 'Input of preset confluent-cloud: name of the secret that holds the API key', NULL, NULL, NULL, false),
    ('api_secret_env', false, 'STRING', 'LOW', NULL, 'Input of preset confluent-cloud: name of the secret that holds the API secret', NULL, NULL, NULL, false),
    ('username_env', false, 'STRING', 'LOW', NULL, 'Input of preset msk-scram: name of the secret that holds the user name', NULL, NULL, NULL, false),
    ('password_env', false, 'STRING', 'LOW', NULL, 'Input of preset msk-scram: name of the secret that holds the password', NULL, NULL, NULL, false),
    ('include', false, 'LIST', 'MEDIUM', '[]', 'What is known of a message beside its value, kept as columns: _topic, _partition, _offset, …', NULL, NULL, '{topic,partition,offset,timestamp,key,headers,tombstone}', true),
    ('rename', false, 'MAP', 'MEDIUM', '{}', 'Column name of a field, instead of its own: {"id": "partner_id"}', NULL, NULL, NULL, false),
    ('exclude', false, 'LIST', 'MEDIUM', NULL, 'Fields that are not landed; not together with only', NULL, NULL, NULL, false),
    ('only', false, 'LIST', 'MEDIUM', NULL, 'The only fields that are landed', NULL, NULL, NULL, false),
    ('types', false, 'MAP', 'MEDIUM', '{}', 'Column type of a field, instead of the inferred one: {"updated_at": "timestamptz"}; numeric may be numeric(p,s)', NULL, NULL, '{bigint,numeric,text,boolean,jsonb,timestamptz,timestamp,date,uuid,"double precision",bytea}', false),
    ('layout', false, 'STRING', 'MEDIUM', 'columns', 'One column a field (columns), or the whole object in the jsonb column payload (document)', NULL, NULL, '{columns,document}', true),
    ('schema', false, 'STRING', 'MEDIUM', 'evolve', 'New fields become columns (evolve), or fail the run: the first message fixes the columns (strict)', NULL, NULL, '{evolve,strict}', false),
    ('type_change', false, 'STRING', 'MEDIUM', 'dead-letter', 'What happens to a value that does not fit its column: its message is set aside, the column becomes text, or the run fails', NULL, NULL, '{dead-letter,widen,fail}', false),
    ('dedup', false, 'STRING', 'MEDIUM', 'content', 'What makes two messages one row: equal content, the same topic, partition and offset, or nothing at all', NULL, NULL, '{content,offset,none}', true),
    ('write', false, 'STRING', 'MEDIUM', 'append', 'Rows are added (append), or, with read full, the table''s content is swapped at the end of the run (replace)', NULL, NULL, '{append,replace}', false),
    ('filter', false, 'NESTED', 'MEDIUM', NULL, 'Only matching messages are landed; the others are counted as filtered', NULL, NULL, NULL, false),
    ('filter.headers', false, 'MAP', 'MEDIUM', NULL, 'Values of a header of which a message must bear one: {"type": ["order.created"]}', NULL, NULL, NULL, false),
    ('filter.key_prefix', false, 'STRING', 'MEDIUM', NULL, 'What the message key must begin with', NULL, NULL, NULL, false)
    ) AS k (key, required, type, importance, default_value, meaning, min_value, max_value, allowed, fixed)
$fn$;
COMMENT ON FUNCTION connector._spec_keys() IS 'The key table behind connector.validate and connector.describe.';
REVOKE ALL ON FUNCTION connector._spec_keys() FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector.describe(connector_type text DEFAULT 'kafka')
RETURNS TABLE (key text, required boolean, type text, importance text, default_value text, meaning text)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.describe(connector_type)
--   Every key that a spec may hold, from the table that the validator reads, in its order. The words and the range that
--   a key allows stand at the end of its meaning.
-- Errors:  22023 unknown connector type.
-- Calls:   connector._spec_keys().
BEGIN
    IF describe.connector_type IS DISTINCT FROM 'kafka' THEN
        RAISE EXCEPTION 'connector type "%" is not known', left(describe.connector_type, 64)
            USING ERRCODE = '22023', HINT = 'Only kafka is known: SELECT * FROM connector.describe();';
    END IF;
    RETURN QUERY
        SELECT k.key, k.required, k.type, k.importance, k.default_value,
            k.meaning
            || CASE WHEN k.max_value IS NOT NULL THEN format('; %s to %s', k.min_value, k.max_value) ELSE '' END
            || CASE
                WHEN k.allowed IS NULL THEN ''
                ELSE format(CASE k.type WHEN 'LONG' THEN ' or %s' WHEN 'STRING' THEN '; one of %s' ELSE '; out of %s' END,
                    array_to_string(k.allowed, ', '))
            END
        FROM connector._spec_keys() AS k;
END
$fn$;
COMMENT ON FUNCTION connector.describe(text) IS 'Every key of a manifest''s spec: required or not, type, importance, default, meaning with its range or words.';
REVOKE ALL ON FUNCTION connector.describe(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.describe(text) TO highwater_operator, highwater_reader;
