-- 20-six-partitions: a position for each partition.
--
-- acme.orders is spread over six partitions by the partner that ordered. A topic of one partition could not tell a
-- position per partition from one number for all; here there are six, and they differ.
--
-- Expect: run 1: status=Completed records_in=24000 records_out=24000 skipped=0
-- Expect-sql: SELECT count(*) FROM connector.t_acme_orders => 24000
-- Expect-sql: SELECT cursor FROM connector.connector_cursor WHERE connector = 'acme-kafka-orders' => {"type": "KafkaOffset", "offsets": {"0": 3880, "1": 3770, "2": 3930, "3": 4120, "4": 4190, "5": 4110}}
-- Expect-sql: SELECT count(*), sum(target_offset), count(*) FILTER (WHERE reached = 'at target') FROM connector.run_partitions WHERE run_id = :'run1' => 6|24000|6
-- Expect-sql: SELECT count(*) > 0 FROM connector.log WHERE run_id = :'run1' AND message LIKE '%[0: 3880, 1: 3770, 2: 3930, 3: 4120, 4: 4190, 5: 4110]%' => t

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-orders', '{billing}', '{
    "name": "acme_orders",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.orders",
    "format": "json"
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;

CALL connector.catch_up('acme-kafka-orders');

SELECT cursor FROM connector.connector_cursor WHERE connector = 'acme-kafka-orders';
SELECT partition, start_offset, target_offset, next_offset, reached
FROM connector.run_partitions JOIN connector.runs USING (run_id) WHERE connector = 'acme-kafka-orders' ORDER BY scheduled_at, partition;
