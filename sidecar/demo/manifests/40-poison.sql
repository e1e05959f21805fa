-- 40-poison: messages that are no JSON object are set aside, one by one.
--
-- One message in seven of acme.partners-poison is a cut object, an array or a bare string: 143 of 1,000, always the same
-- ones. Each becomes a dead letter with its coordinates and its bytes, the position moves past it in the same transaction,
-- and its neighbours land. What was read is what was written and what was set aside: 1000 = 857 + 143.
--
-- Expect: run 1: status=Completed records_in=1000 records_out=857 skipped=143 dead_letters=143
-- Expect-sql: SELECT count(*) FROM connector.t_acme_partners_poison => 857
-- Expect-sql: SELECT reason, status, count(*), count(*) FILTER (WHERE "offset" % 7 = 3) FROM connector.dlq WHERE run_id = :'run1' GROUP BY reason, status => MalformedSource|open|143|143
-- Expect-sql: SELECT payload FROM connector.dlq WHERE run_id = :'run1' AND "offset" = 990 => {"raw": ["{\"broken\": "], "file": "acme.partners-poison:0:990", "line": 990}
-- Expect-sql: SELECT starts_with(message, 'acme.partners-poison:0:990:990') FROM connector.dlq WHERE run_id = :'run1' AND "offset" = 990 => t
-- Expect-sql: SELECT count(*) FROM connector.verify() => 0

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-poison', '{billing}', '{
    "name": "acme_partners_poison",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.partners-poison",
    "format": "json"
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;

CALL connector.catch_up('acme-kafka-poison');

SELECT reason, attempts, message, payload FROM connector.dlq WHERE connector = 'acme-kafka-poison' ORDER BY "offset" DESC LIMIT 3;
SELECT status, records_in, records_out, skipped, dead_letters, message
FROM connector.runs WHERE connector = 'acme-kafka-poison' ORDER BY scheduled_at;
