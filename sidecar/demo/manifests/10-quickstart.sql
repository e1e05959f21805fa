-- 10-quickstart: one topic, one partition, no authentication.
--
-- An address, a topic and a name for the table are all there is to declare. The read position lives in this database,
-- next to the rows; the broker keeps nothing for us and is told nothing. A run ends where the topic ended when the run
-- began, so the second one, on a topic that has not moved, finds nothing to do.
--
-- Expect: run 1: status=Completed code=ok records_in=2400 records_out=2400 skipped=0 dead_letters=0 duplicates=0
-- Expect: run 2: status=Completed code=ok records_in=0 records_out=0
-- Expect-sql: SELECT count(*), count(DISTINCT partner_id) FROM connector.t_acme_partners => 2400|2400
-- Expect-sql: SELECT string_agg(concat_ws(' ', partner_id, '/', name, '/', city, '/', credit_limit), ', ' ORDER BY id) FROM connector.t_acme_partners WHERE partner_id < 1004 => 1000 / Hydraulique Lyon 1000 / Lyon / 500, 1001 / Roulements Bruxelles 1001 / Bruxelles / 637, 1002 / Fixations Milano 1002 / Milano / 774, 1003 / Pneumatique Porto 1003 / Porto / 911
-- Expect-sql: SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY ordinal_position) FROM information_schema.columns WHERE table_schema = 'connector' AND table_name = 't_acme_partners' AND ordinal_position > 7 => partner_id bigint, name text, city text, country text, credit_limit bigint, updated_at text

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-partners', '{billing}', '{
    "name": "acme_partners",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.partners",
    "format": "json"
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;

CALL connector.catch_up('acme-kafka-partners');
CALL connector.catch_up('acme-kafka-partners');

SELECT partner_id, name, city, credit_limit, updated_at FROM connector.t_acme_partners ORDER BY id LIMIT 4;
SELECT status, records_in, records_out, skipped, dead_letters, message
FROM connector.runs WHERE connector = 'acme-kafka-partners' ORDER BY scheduled_at;
