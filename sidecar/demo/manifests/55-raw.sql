-- 55-raw: names and shapes arrive as the producer chose them.
--
-- A blank, a dot, a capital or a currency sign in a field's name is one in the column's name, which is then written in
-- quotes. An object or an array becomes jsonb, whole. A number with a decimal point is stored as it was written, never
-- rounded.
--
-- Expect: run 1: status=Completed records_in=500 records_out=500 skipped=0
-- Expect-sql: SELECT count(*), max("MONTANT_€"), max("credit.limit") FROM connector.t_acme_partners_raw => 500|748.5000|20369
-- Expect-sql: SELECT "Partner Name", address, tags FROM connector.t_acme_partners_raw WHERE partner_id = 1001 => Roulements Bruxelles 1001|{"city": "Bruxelles", "street": "1 rue de l'Usine"}|["erp", "partner", "batch-1"]
-- Expect-sql: SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY ordinal_position) FROM information_schema.columns WHERE table_schema = 'connector' AND table_name = 't_acme_partners_raw' AND ordinal_position > 7 => partner_id bigint, Partner Name text, credit.limit bigint, MONTANT_€ numeric, address jsonb, tags jsonb

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-raw', '{billing}', '{
    "name": "acme_partners_raw",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.partners-raw",
    "format": "json"
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;

CALL connector.catch_up('acme-kafka-raw');

SELECT partner_id, "Partner Name", "credit.limit", "MONTANT_€", address, tags
FROM connector.t_acme_partners_raw ORDER BY id LIMIT 2;
