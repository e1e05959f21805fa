-- 45-compacted: a deletion is not garbage, and not a DELETE either.
--
-- After 1,000 partners the producer deletes the first 300 keys: on a compacted topic that is a message with a key and no
-- value, a tombstone. The table keeps what the topic carried, so each tombstone is set aside as a dead letter that names
-- the key it deletes.
--
-- Expect: run 1: status=Completed records_in=1300 records_out=1000 skipped=300 dead_letters=300 tombstones_applied=0
-- Expect-sql: SELECT count(*) FROM connector.t_acme_partners_compacted => 1000
-- Expect-sql: SELECT count(*), min("offset"), max("offset"), count(*) FILTER (WHERE position(key IN message) > 0) FROM connector.dlq WHERE run_id = :'run1' => 300|1000|1299|300
-- Expect-sql: SELECT key FROM connector.dlq WHERE run_id = :'run1' AND "offset" = 1299 => 1299

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-compacted', '{billing}', '{
    "name": "acme_partners_compacted",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.partners-compacted",
    "format": "json"
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;

CALL connector.catch_up('acme-kafka-compacted');

SELECT key, message FROM connector.dlq WHERE connector = 'acme-kafka-compacted' ORDER BY "offset" DESC LIMIT 3;
SELECT status, records_in, records_out, skipped, dead_letters, message
FROM connector.runs WHERE connector = 'acme-kafka-compacted' ORDER BY scheduled_at;
