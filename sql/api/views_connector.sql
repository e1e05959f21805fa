-- Connectors at a glance, the sidecars that serve them, and who did what. A view only ever gains columns at its end.

CREATE OR REPLACE VIEW connector.connectors WITH (security_invoker = on) AS
SELECT m.name,
    m.connector_type AS kind,
    m.tenant_id,
    e.table_name,
    m.spec ->> 'topic' AS topic,
    m.spec ->> 'schedule' AS schedule,
    m.spec ->> 'window' AS "window",
    r.status,
    coalesce(r.started_at, r.scheduled_at) AS last_run_at,
    nullif(s.next_at, 'infinity') AS next_run_at,
    e.data_as_of,
    (SELECT sum(l.lag)::bigint FROM connector.lag AS l WHERE l.connector = m.name) AS lag,
    (SELECT count(*) FROM connector._dlq AS d WHERE d.connector_id = m.connector_id AND d.status = 'open') AS open_dead_letters
FROM connector.manifest AS m
LEFT JOIN connector._endpoint AS e ON e.connector_id = m.connector_id
LEFT JOIN connector._schedule AS s ON s.connector_id = m.connector_id
LEFT JOIN LATERAL (
    SELECT l.status, l.started_at, l.scheduled_at
    FROM connector._run AS l
    WHERE l.connector_id = m.connector_id
        AND (l.code IS NULL OR l.code NOT IN ('joined', 'skipped_active', 'skipped_window'))
    ORDER BY l.scheduled_at DESC
    LIMIT 1) AS r ON true;
COMMENT ON VIEW connector.connectors IS 'One row a connector: what it reads, how its last run went, how far it is behind. Columns are only ever added at the end.';
COMMENT ON COLUMN connector.connectors.name IS 'Name of the connector.';
COMMENT ON COLUMN connector.connectors.kind IS 'The manifest''s connector_type.';
COMMENT ON COLUMN connector.connectors.tenant_id IS 'The tenant that owns it.';
COMMENT ON COLUMN connector.connectors.table_name IS 'Its table in schema connector; made by the first run that has a row to write.';
COMMENT ON COLUMN connector.connectors.topic IS 'The topic it reads.';
COMMENT ON COLUMN connector.connectors.schedule IS 'Cron expression by which it runs by itself, UTC; null where it does not.';
COMMENT ON COLUMN connector.connectors."window" IS 'When scheduled runs may start; null for always.';
COMMENT ON COLUMN connector.connectors.status IS 'Status of the last run (one that was skipped or joined another does not count); null before the first.';
COMMENT ON COLUMN connector.connectors.last_run_at IS 'When that run started, or was asked for if it has not started.';
COMMENT ON COLUMN connector.connectors.next_run_at IS 'Next time of the schedule that lies in the window, UTC; one that has passed waits for a sidecar. Null without a schedule, and while a copied database holds its schedules (connector.adopt).';
COMMENT ON COLUMN connector.connectors.data_as_of IS 'Everything that the broker held at this moment is in the table: when the last Completed run measured the heads.';
COMMENT ON COLUMN connector.connectors.lag IS 'Offsets behind the heads as last measured, over all partitions: connector.lag.';
COMMENT ON COLUMN connector.connectors.open_dead_letters IS 'Dead letters of status open: connector.dlq.';

CREATE OR REPLACE VIEW connector.sidecars WITH (security_invoker = on) AS
SELECT s.sidecar,
    s.host,
    s.version,
    s.started_at,
    s.last_seen_at,
    s.running
FROM connector._sidecar AS s;
COMMENT ON VIEW connector.sidecars IS 'The sidecars that serve this database. One that lives was seen within the last 2 seconds; one that is silent for a day is forgotten.';
COMMENT ON COLUMN connector.sidecars.sidecar IS 'Its name, one a process.';
COMMENT ON COLUMN connector.sidecars.host IS 'The machine it runs on, as it calls itself.';
COMMENT ON COLUMN connector.sidecars.version IS 'Version of its program.';
COMMENT ON COLUMN connector.sidecars.started_at IS 'When it was first seen, or came back after 15 seconds of silence.';
COMMENT ON COLUMN connector.sidecars.last_seen_at IS 'Its last heartbeat; it beats once a second.';
COMMENT ON COLUMN connector.sidecars.running IS 'Runs in its hands.';

CREATE OR REPLACE VIEW connector.audit WITH (security_invoker = on) AS
SELECT a.at,
    a.role,
    a.action,
    a.connector,
    a.detail
FROM connector._audit AS a;
COMMENT ON VIEW connector.audit IS 'Every gesture that moves or erases something: when, who, what.';
COMMENT ON COLUMN connector.audit.at IS 'When it was done.';
COMMENT ON COLUMN connector.audit.role IS 'The role that connected to the server.';
COMMENT ON COLUMN connector.audit.action IS 'What was done, as one word.';
COMMENT ON COLUMN connector.audit.connector IS 'Name of the connector.';
COMMENT ON COLUMN connector.audit.detail IS 'What was there before, and what was asked for.';
