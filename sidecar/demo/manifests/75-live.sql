-- 75-live: a topic that is written to while it is read.
--
-- A run asks once where the topic ends, reads up to there and completes; it does not chase what arrives meanwhile. So it
-- ends while the producer is still at work, with fewer messages than the producer will have sent, and the next run reads
-- the rest: none missing, none twice.
--
-- Expect: run 1: status=Completed
-- Expect: run 2: status=Completed
-- Expect-sql: SELECT records_in > 0 AND records_in < :fed AND ended_at < :'fed_until' FROM connector.runs WHERE run_id = :'run1' => t
-- Expect-sql: SELECT sum(records_in) FROM connector.runs WHERE run_id IN (:'run1', :'run2') => :fed
-- Expect-sql: SELECT count(*), count(DISTINCT partner_id) FROM connector.t_acme_live => :fed|:fed

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-live', '{billing}', '{
    "name": "acme_live",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.live",
    "format": "json"
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;

\! highwater feed --topic acme.live --rate 200 --seconds 6 &
\! sleep 2

CALL connector.catch_up('acme-kafka-live');

\! sleep 5

CALL connector.catch_up('acme-kafka-live');

SELECT status, records_in, records_out, started_at, ended_at, duration
FROM connector.runs WHERE connector = 'acme-kafka-live' ORDER BY scheduled_at;
