-- 01: one row declares a connector.

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-partners', '{billing}', '{
    "name": "partners",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.partners"
}');

SELECT name, connector_type, scopes, tenant_id, connector_id IS NOT NULL AS has_id FROM connector.manifest;

-- A manifest that cannot work is refused with everything that is wrong with it. Nothing is stored.
INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-wrong', '{billing}', '{
    "name": "9acme",
    "brokers": "127.0.0.1",
    "topic": "acme/partners",
    "format": "avro",
    "poll_timeout": 50,
    "auth": {"kind": "oauth"}
}');
\echo SQLSTATE :LAST_ERROR_SQLSTATE

SELECT name FROM connector.manifest;

-- To ask first, and to see each finding as a row. The same words, and nothing is written.
SELECT severity, path, message FROM connector.validate('{"name": "partners", "brokers": "127.0.0.1", "topic": "acme.partners", "chunk_row": 5}');
SELECT path, hint FROM connector.validate('{"name": "partners", "brokers": "127.0.0.1", "topic": "acme.partners", "chunk_row": 5}');

-- A warning does not stand in the way: the row is stored.
INSERT INTO connector.manifest (name, spec) VALUES ('acme-orders', '{
    "name": "orders",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.orders",
    "start_positon": "latest"
}');

-- To change a connector, write its row again.
INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-orders', '{billing}', '{
    "name": "orders",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.orders",
    "start_position": "latest",
    "rename": {"id": "order_id"}
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;
SELECT jsonb_pretty(connector.get('acme-orders')) AS spec;

-- Some things never change, and some not while positions rest on them.
UPDATE connector.manifest SET name = 'acme-orders-2' WHERE name = 'acme-orders';
\echo SQLSTATE :LAST_ERROR_SQLSTATE

-- A whole document does the same as the row.
SELECT name, endpoints_applied FROM connector.apply('{
    "apiVersion": "connectors.highwater.io/v1",
    "kind": "Connector",
    "metadata": {"name": "acme-events", "scopes": ["billing"]},
    "spec": {"name": "events", "preset": "event-hubs", "namespace": "acme", "connection_string_env": "ACME_EVENT_HUBS"}
}');

-- It lacked its topic, so it was refused, as the row would have been. With it, the preset is expanded.
SELECT name, endpoints_applied FROM connector.apply('{
    "apiVersion": "connectors.highwater.io/v1",
    "kind": "Connector",
    "metadata": {"name": "acme-events", "scopes": ["billing"]},
    "spec": {"name": "events", "topic": "telemetry", "preset": "event-hubs", "namespace": "acme", "connection_string_env": "ACME_EVENT_HUBS"}
}');
SELECT jsonb_pretty(connector.get('acme-events')) AS spec;

-- What may stand in a spec. The validator reads the same table.
SELECT key, required, type, default_value, meaning FROM connector.describe() WHERE key ~ '^(name|topic|format|chunk_rows|auth.*)$';

SELECT name, table_name, topic, status, open_dead_letters FROM connector.connectors ORDER BY name;

-- To be rid of one.
DELETE FROM connector.manifest WHERE name = 'acme-events';
SELECT connector.drop('acme-orders');
SELECT name FROM connector.manifest;
