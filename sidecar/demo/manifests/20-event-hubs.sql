-- 20-event-hubs: Azure Event Hubs through its preset.
--
-- A namespace and the name of the secret that holds the connection string become a whole Kafka configuration when the
-- row is stored: the preset's own keys are gone from it. Event Hubs takes the literal text $ConnectionString as the user
-- name, which is no secret but is named like one: EVENT_HUBS_SASL_USERNAME.
-- There is no such namespace, so this file declares and shows what was stored; it runs nothing.
--
-- Expect-sql: SELECT connector.get('event-hubs-telemetry') -> 'auth' => {"kind": "sasl-plain", "password_env": "EVENTHUBS_CONN_STR", "username_env": "EVENT_HUBS_SASL_USERNAME", "security_protocol": "SASL_SSL"}
-- Expect-sql: SELECT connector.get('event-hubs-telemetry') ->> 'brokers' => my-namespace.servicebus.windows.net:9093
-- Expect-sql: SELECT spec ?| ARRAY['preset', 'namespace', 'connection_string_env'] FROM connector.manifest WHERE name = 'event-hubs-telemetry' => f
-- Expect-sql: SELECT count(*) FROM connector.runs WHERE connector = 'event-hubs-telemetry' => 0

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('event-hubs-telemetry', '{demo,azure}', '{
    "preset": "event-hubs",
    "name": "telemetry_events",
    "namespace": "my-namespace",
    "connection_string_env": "EVENTHUBS_CONN_STR",
    "topic": "telemetry",
    "format": "json"
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;

SELECT jsonb_pretty(connector.get('event-hubs-telemetry'));
