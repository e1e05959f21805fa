-- 58-reserved: a field that is called like one of the connector's own columns.
--
-- Every connector table begins with seven columns of its own, and id is one of them. A message with a field of that name
-- cannot land beside it, so the run is refused before it writes anything; the refusal names the seven and the way out,
-- which is to declare another column for the field: "rename": {"id": "partner_id"}.
--
-- Expect: run 1: status=Failed code=reserved_column records_in=0 message~id message~_row_hash message~_ingested_at message~_source message~_run_id message~_mapping_version message~tenant_id
-- Expect-sql: SELECT position('rename' IN concat(message, hint)) > 0 FROM connector.runs WHERE run_id = :'run1' => t
-- Expect-sql: SELECT to_regclass('connector.t_acme_partners_reserved') IS NULL => t

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-reserved', '{billing}', '{
    "name": "acme_partners_reserved",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.partners-reserved",
    "format": "json"
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;

CALL connector.catch_up('acme-kafka-reserved');

SELECT status, code, message, hint
FROM connector.runs WHERE connector = 'acme-kafka-reserved' ORDER BY scheduled_at;
