-- 50-drift: the producer changes its mind half way.
--
-- From message 1,201 on the partners of acme.partners-drift carry two fields more. Nothing here says so: a field becomes
-- a column in the transaction of the first messages that have it, behind the columns that are there, and the rows written
-- earlier hold NULL in it.
--
-- Expect: run 1: status=Completed records_in=2400 records_out=2400 skipped=0
-- Expect-sql: SELECT count(*), count(vat_number), count(segment) FROM connector.t_acme_partners_drift => 2400|1200|1200
-- Expect-sql: SELECT min(partner_id) FROM connector.t_acme_partners_drift WHERE vat_number IS NOT NULL => 2200
-- Expect-sql: SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY ordinal_position) FROM information_schema.columns WHERE table_schema = 'connector' AND table_name = 't_acme_partners_drift' AND ordinal_position > 7 => partner_id bigint, name text, city text, country text, credit_limit bigint, updated_at text, vat_number text, segment text

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-drift', '{billing}', '{
    "name": "acme_partners_drift",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.partners-drift",
    "format": "json"
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;

CALL connector.catch_up('acme-kafka-drift');

SELECT count(*) AS rows, count(vat_number) AS with_vat_number, count(segment) AS with_segment
FROM connector.t_acme_partners_drift;
SELECT column_name, data_type, added_at FROM connector.catalog WHERE connector = 'acme-kafka-drift';
