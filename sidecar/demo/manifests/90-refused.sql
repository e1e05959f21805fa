-- 90-refused: five mistakes in one row, each of them named, and nothing stored.
--
-- The row is judged as a whole before it is written: one error that lists every finding by its path, so that there is one
-- round of mending and not five. The warning is worth as much: poll_timeout is read by nothing, the key that somebody
-- meant is poll_timeout_ms. Do not mend this file.
--
-- Expect-error: 22023: ERROR spec.name, ERROR spec.topic, ERROR spec.format, ERROR spec.max_poll_records, ERROR spec.auth.kind, WARN spec.poll_timeout
-- Expect-sql: SELECT count(*) FROM connector.manifest WHERE name = 'acme-kafka-refused' => 0

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-refused', '{billing}', '{
    "name": "9acme",
    "brokers": "127.0.0.1:29092",
    "topic": "acme/partners",
    "format": "avro",
    "poll_timeout": 50,
    "max_poll_records": 0,
    "auth": {"kind": "oauth"}
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;
