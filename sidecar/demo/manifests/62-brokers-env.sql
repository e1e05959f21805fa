-- 62-brokers-env: the address by name.
--
-- brokers_env names a value that is looked up when the run starts: in this tenant's secrets, then in the environment of
-- the sidecar. While neither has it, the run fails and names both places; once one has it, the same row runs.
--
-- Expect: run 1: status=Failed code=secret_missing records_in=0 message~ACME_KAFKA_BROKERS message~brokers_env message~registry message~environment
-- Expect: run 2: status=Completed records_in=2400 records_out=2400
-- Expect-sql: SELECT count(*) FROM connector.t_acme_partners_by_name => 2400

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-brokers-env', '{billing}', '{
    "name": "acme_partners_by_name",
    "brokers_env": "ACME_KAFKA_BROKERS",
    "topic": "acme.partners",
    "format": "json"
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;

CALL connector.catch_up('acme-kafka-brokers-env');

-- Gesture: environment ACME_KAFKA_BROKERS=127.0.0.1:29092
\prompt 'Give the sidecar ACME_KAFKA_BROKERS (connector.secret_set, or its environment), then press Enter: ' done

CALL connector.catch_up('acme-kafka-brokers-env');

SELECT status, code, records_in, message
FROM connector.runs WHERE connector = 'acme-kafka-brokers-env' ORDER BY scheduled_at;
