-- 65-sasl: a user name and a password, both by name.
--
-- The row holds no credential, only where to find two. The demo's broker authenticates nobody, so this can end well
-- nowhere; it is here for its two refusals: one before any connection, for a name that leads to nothing, and one from the
-- broker, which takes no handshake on this port. Neither ever shows the password.
--
-- Expect: run 1: status=Failed code=secret_missing records_in=0 message~ACME_KAFKA_USER message~username_env message~registry message~environment
-- Expect: run 2: status=Failed code=auth_failed records_in=0 message~PLAIN
-- Expect-sql: SELECT count(*) FROM connector.runs WHERE concat(message, hint) LIKE '%no-real-password%' => 0
-- Expect-sql: SELECT count(*) FROM connector.log WHERE message LIKE '%no-real-password%' => 0
-- Expect-sql: SELECT to_regclass('connector.t_acme_partners_sasl') IS NULL => t

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-sasl', '{billing}', '{
    "name": "acme_partners_sasl",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.partners",
    "format": "json",
    "auth": {
        "kind": "sasl-plain",
        "security_protocol": "SASL_PLAINTEXT",
        "username_env": "ACME_KAFKA_USER",
        "password_env": "ACME_KAFKA_PW"
    }
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;

CALL connector.catch_up('acme-kafka-sasl');

-- Gesture: environment ACME_KAFKA_USER=acme
-- Gesture: environment ACME_KAFKA_PW=no-real-password
\prompt 'Give the sidecar ACME_KAFKA_USER and ACME_KAFKA_PW (connector.secret_set, or its environment), then press Enter: ' done

CALL connector.catch_up('acme-kafka-sasl');

SELECT status, code, message, hint
FROM connector.runs WHERE connector = 'acme-kafka-sasl' ORDER BY scheduled_at;
