-- Rules of the source: where the broker is, what is read, and in which pieces.

CREATE OR REPLACE FUNCTION connector._is_ipv6(word text)
RETURNS boolean
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._is_ipv6(word)
--   Whether a word is an IPv6 address, without brackets, zone or mask.
BEGIN
    RETURN word ~ '^[0-9A-Fa-f:.]{2,45}$' AND strpos(word, ':') > 0 AND family(word::inet) = 6;
EXCEPTION
    WHEN invalid_text_representation THEN
        RETURN false;
END
$fn$;
COMMENT ON FUNCTION connector._is_ipv6(text) IS 'Whether a word is an IPv6 address.';
REVOKE ALL ON FUNCTION connector._is_ipv6(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._broker_faults(brokers text)
RETURNS TABLE (message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._broker_faults(brokers)
--   What is wrong with each entry of a list of host:port, in words that follow the key's name. An entry is shown only
--   where it is made of the letters of an address: anything else may hold a credential.
    SELECT format('entry %s%s ', e.n, CASE WHEN e.entry ~ '^[A-Za-z0-9._:\[\]-]+$' THEN ' ' || connector._shown(e.entry) ELSE '' END) || f.fault,
        coalesce(f.hint, 'Write host:port separated by commas, an IPv6 address in brackets: broker-1:9092,[2001:db8::1]:9092.')
    FROM (
        SELECT s.n, btrim(s.entry, E' \t\r\n') AS entry,
            regexp_match(btrim(s.entry, E' \t\r\n'), '^(\[.*\]|[^:]*):([0-9]+)$') AS part
        FROM unnest(string_to_array(_broker_faults.brokers, ',')) WITH ORDINALITY AS s (entry, n)
    ) AS e
    CROSS JOIN LATERAL (SELECT
        CASE
            WHEN e.entry = '' THEN 'is empty'
            WHEN strpos(e.entry, '://') > 0 THEN 'has a scheme'
            WHEN strpos(e.entry, '@') > 0 THEN 'holds an @'
            WHEN e.entry ~ '^[^\[].*:.*:' THEN 'has more than one colon'
            WHEN e.part IS NULL THEN 'has no port'
            WHEN e.part[1] LIKE '[%' AND NOT connector._is_ipv6(btrim(e.part[1], '[]')) THEN 'holds no IPv6 address in its brackets'
            WHEN e.part[1] NOT LIKE '[%' AND e.part[1] !~ '^[A-Za-z0-9]([A-Za-z0-9._-]{0,252})$' THEN 'has no host name'
            WHEN length(e.part[2]) > 5 THEN 'has a port outside 1 to 65535'
            WHEN e.part[2]::integer NOT BETWEEN 1 AND 65535 THEN 'has a port outside 1 to 65535'
        END AS fault,
        CASE WHEN strpos(e.entry, '@') > 0 THEN 'Credentials go into auth, by name.' END AS hint
    ) AS f
    WHERE f.fault IS NOT NULL
    ORDER BY e.n
    LIMIT 20
$fn$;
COMMENT ON FUNCTION connector._broker_faults(text) IS 'What is wrong with a list of brokers, entry by entry.';
REVOKE ALL ON FUNCTION connector._broker_faults(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._check_source(spec jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_source(spec)
--   Rules of name, brokers, topic, client_id and the keys that size a chunk. A condition that is NULL is no finding: the
--   key is absent, or its type is already one.
    SELECT f.severity, f.path, f.message, f.hint
    FROM (SELECT
        connector._text_at(_check_source.spec, 'name') AS name,
        connector._text_at(_check_source.spec, 'topic') AS topic,
        _check_source.spec ? 'brokers' AS brokers,
        _check_source.spec ? 'brokers_env' AS brokers_env
    ) AS s
    CROSS JOIN LATERAL (VALUES
        ('ERROR', 'spec.name', 'name must be letters, digits and underscores, not starting with a digit: it becomes the table connector.t_<name>',
            'Use a name such as acme_partners.', s.name !~ '^[A-Za-z_][A-Za-z0-9_]*$'),
        ('ERROR', 'spec.name', format('name is %s bytes long; the limit is 40', octet_length(s.name)),
            'Shorten it: its table, indexes and sequence must fit PostgreSQL''s 63 bytes.', octet_length(s.name) > 40),
        ('ERROR', 'spec.brokers', 'exactly one of brokers and brokers_env is required',
            'Give spec.brokers, as host:port separated by commas, or spec.brokers_env, the name that holds them.',
            NOT s.brokers AND NOT s.brokers_env AND NOT _check_source.spec ? 'preset'),
        ('ERROR', 'spec.brokers', 'brokers and brokers_env are both given', 'Keep one of the two.', s.brokers AND s.brokers_env),
        ('ERROR', 'spec.topic', 'topic must be letters, digits, dots, underscores and hyphens, not ' || connector._shown(s.topic),
            'Kafka allows [a-zA-Z0-9._-]+ and nothing else.', s.topic !~ '^[a-zA-Z0-9._-]+$'),
        ('ERROR', 'spec.topic', format('topic is %s characters long; the limit is 249', length(s.topic)), 'Check the name on the broker.', length(s.topic) > 249),
        ('ERROR', 'spec.topic', format('topic must not be %s', connector._shown(s.topic)), 'Kafka reserves . and .. as names.', s.topic IN ('.', '..')),
        ('ERROR', 'spec.client_id', 'client_id must be printable ASCII without blanks, at most 255 characters', 'Use a name such as highwater.',
            connector._text_at(_check_source.spec, 'client_id') !~ '^[\x21-\x7e]{1,255}$'),
        ('ERROR', 'spec.chunk_rows', 'chunk_rows and max_poll_records are both given', 'Keep one of the two.',
            _check_source.spec ? 'chunk_rows' AND _check_source.spec ? 'max_poll_records')
    ) AS f (severity, path, message, hint, holds)
    WHERE f.holds
    UNION ALL
    SELECT 'ERROR', 'spec.brokers', 'brokers ' || b.message, b.hint
    FROM connector._broker_faults(connector._text_at(_check_source.spec, 'brokers')) AS b
$fn$;
COMMENT ON FUNCTION connector._check_source(jsonb) IS 'Findings about name, brokers, topic, client_id and chunk sizes.';
REVOKE ALL ON FUNCTION connector._check_source(jsonb) FROM PUBLIC;
