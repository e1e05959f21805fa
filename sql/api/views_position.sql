-- Positions as operators see them. A view only ever gains columns at its end.

CREATE OR REPLACE VIEW connector.connector_cursor WITH (security_invoker = on) AS
SELECT e.connector,
    'default'::text AS endpoint,
    jsonb_build_object('type', 'KafkaOffset', 'offsets', jsonb_object_agg(c.partition::text, c.next_offset)) AS cursor,
    max(c.updated_at) AS updated_at
FROM connector._endpoint AS e
JOIN connector._cursor AS c ON c.connector_id = e.connector_id
GROUP BY e.connector_id, e.connector;
COMMENT ON VIEW connector.connector_cursor IS 'Stored positions, one row a connector that has any: {"type":"KafkaOffset","offsets":{"<partition>":<next offset>}}, in partition order. They change with the rows of the table, in one transaction.';
COMMENT ON COLUMN connector.connector_cursor.connector IS 'Name of the connector.';
COMMENT ON COLUMN connector.connector_cursor.endpoint IS 'Always default.';
COMMENT ON COLUMN connector.connector_cursor.cursor IS 'Partition to next offset: the first one not yet read.';
COMMENT ON COLUMN connector.connector_cursor.updated_at IS 'When a position last moved.';

CREATE OR REPLACE VIEW connector.lag WITH (security_invoker = on) AS
SELECT e.connector,
    l.topic,
    l.partition,
    c.next_offset,
    l.log_start_offset,
    l.high_watermark,
    greatest(l.high_watermark - greatest(coalesce(c.next_offset, l.log_start_offset), l.log_start_offset), 0) AS lag,
    l.measured_at
FROM connector._lag AS l
JOIN connector._endpoint AS e ON e.connector_id = l.connector_id
LEFT JOIN connector._cursor AS c ON c.connector_id = l.connector_id AND c.partition = l.partition;
COMMENT ON VIEW connector.lag IS 'Offsets behind the head, one row a partition: the position as it is now against the ends that the last run measured.';
COMMENT ON COLUMN connector.lag.connector IS 'Name of the connector.';
COMMENT ON COLUMN connector.lag.topic IS 'The topic, as the last run read it.';
COMMENT ON COLUMN connector.lag.partition IS 'The partition.';
COMMENT ON COLUMN connector.lag.next_offset IS 'The first offset not yet read; null where nothing was read.';
COMMENT ON COLUMN connector.lag.log_start_offset IS 'First offset that the broker held.';
COMMENT ON COLUMN connector.lag.high_watermark IS 'Offset after the last fully replicated record.';
COMMENT ON COLUMN connector.lag.lag IS 'high_watermark minus next_offset (or minus log_start_offset where that is later), never below 0.';
COMMENT ON COLUMN connector.lag.measured_at IS 'When the broker said so.';
