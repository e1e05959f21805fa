-- 03: positions are rows of this database. The broker knows nothing of them.

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-orders', '{billing}',
    '{"name": "orders", "brokers": "127.0.0.1:29092", "topic": "acme.orders"}');

-- Before the first run there are none.
SELECT connector, cursor FROM connector.connector_cursor;

SELECT connector.run('acme-orders') AS run \gset
SELECT status, records_in, records_out, duplicates FROM connector.wait(:'run');

SELECT connector, endpoint, cursor FROM connector.connector_cursor;
SELECT topic, partition, next_offset, log_start_offset, high_watermark, lag, measured_at <= now() AS measured FROM connector.lag ORDER BY partition;

-- The next offset of one partition, moved back by a hundred: the rows are there already, so they are counted as duplicates.
SELECT next_offset - 100 AS back FROM connector.lag WHERE partition = 0 \gset
SELECT connector.seek('acme-orders', 0, :back);
SELECT partition, lag FROM connector.lag ORDER BY partition;
SELECT connector.run('acme-orders') AS run \gset
SELECT status, records_in, records_out, duplicates FROM connector.wait(:'run');

-- To a time, in every partition. Only the broker knows which offsets these are: positions move when the next run plans.
SELECT connector.seek('acme-orders', timestamptz '2100-01-01 00:00Z');
SELECT connector.run('acme-orders') AS run \gset
SELECT status, records_in FROM connector.wait(:'run');

-- An offset that the log does not reach is judged by the next run: it reads nothing and names both numbers.
SELECT connector.seek('acme-orders', 1, 999999);
SELECT connector.run('acme-orders') AS run \gset
\x
SELECT status, code, message, hint, records_in FROM connector.wait(:'run');
\x

-- Back to the beginning. It returns the number of partitions that were forgotten.
SELECT connector.reset_cursor('acme-orders');
SELECT connector.run('acme-orders') AS run \gset
SELECT status, records_in, records_out, duplicates FROM connector.wait(:'run');
SELECT count(*) AS orders FROM connector.t_orders;

-- Who did it. The topic's id differs from broker to broker.
SELECT action, connector, role = session_user AS mine, detail - 'topic_id' - 'cluster_id' AS detail FROM connector.audit ORDER BY at;
