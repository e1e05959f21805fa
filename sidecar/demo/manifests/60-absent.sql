-- 60-absent: a topic that the broker does not have.
--
-- Reading must not write to the source, so the topic is asked for with automatic creation off, and the empty answer is
-- refused by name within milliseconds. Nothing is made on either side: no topic, no table.
--
-- Expect: run 1: status=Failed code=topic_missing records_in=0 message~acme.absent
-- Expect-sql: SELECT to_regclass('connector.t_acme_absent') IS NULL => t
-- Expect-sql: SELECT extract(epoch FROM duration) < 5 FROM connector.runs WHERE run_id = :'run1' => t
-- Expect-no-topic: acme.absent

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-absent', '{billing}', '{
    "name": "acme_absent",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.absent",
    "format": "json"
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;

CALL connector.catch_up('acme-kafka-absent');

SELECT status, code, message, hint, duration
FROM connector.runs WHERE connector = 'acme-kafka-absent' ORDER BY scheduled_at;
