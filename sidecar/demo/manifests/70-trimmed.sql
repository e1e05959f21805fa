-- 70-trimmed: the broker deletes what the stored position still points at.
--
-- The first run stops at offset 5000. Then the producer writes on, and everything below 5500 is deleted, as retention
-- would do in time. The second run reads what is left, names the 500 offsets that nobody can read any more, and is
-- Partial: a run that read less than the topic ever held must not look like one that read it all.
--
-- Expect: run 1: status=Completed records_in=5000 records_out=5000
-- Expect: run 2: status=Partial code=offsets_expired message~5000..5499 message~5500
-- Expect-sql: SELECT records_in = :fed - 500 AND records_out = records_in FROM connector.runs WHERE run_id = :'run2' => t
-- Expect-sql: SELECT start_offset, target_offset - :fed, lost_from, lost_to FROM connector.run_partitions WHERE run_id = :'run2' => 5500|5000|5000|5499
-- Expect-sql: SELECT count(*) > 0 FROM connector.log WHERE run_id = :'run2' AND level = 'WARN' AND message LIKE '%5000..5499%' => t
-- Expect-sql: SELECT count(*) - (:fed - 500) FROM connector.t_acme_partners_trimmed => 5000

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-trimmed', '{billing}', '{
    "name": "acme_partners_trimmed",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.partners-trimmed",
    "format": "json"
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;

CALL connector.catch_up('acme-kafka-trimmed');

\! highwater feed --topic acme.partners-trimmed --rate 500 --seconds 3
\! highwater trim --topic acme.partners-trimmed --before 5500

CALL connector.catch_up('acme-kafka-trimmed');

SELECT status, records_in, records_out, skipped, dead_letters, message
FROM connector.runs WHERE connector = 'acme-kafka-trimmed' ORDER BY scheduled_at;
SELECT partition, start_offset, target_offset, lost_from, lost_to
FROM connector.run_partitions JOIN connector.runs USING (run_id) WHERE connector = 'acme-kafka-trimmed' ORDER BY scheduled_at;
