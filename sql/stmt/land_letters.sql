-- Stores dead letters; one that is met again counts the attempt and is open once more, under the new run and reason.
-- $1 bigint: tenant; $2 uuid: connector; $3 text: its name; $4 uuid: run; $5 text: topic; $6 uuid: topic id or null; then one array a column.
INSERT INTO connector._dlq AS d
    (tenant_id, connector_id, connector, run_id, topic, topic_id, partition, "offset", reason, message, sqlstate, payload, key, headers, raw)
SELECT
    $1::bigint, $2::uuid, $3::text, $4::uuid, $5::text, $6::uuid,
    u.partition, u.next, u.reason, u.message, u.sqlstate, u.payload::jsonb, u.key, u.headers::jsonb, u.raw
FROM unnest($7::integer[], $8::bigint[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::bytea[])
    AS u (partition, next, reason, message, sqlstate, payload, key, headers, raw)
ON CONFLICT (connector_id, topic_id, topic, partition, "offset") DO UPDATE
SET attempts = d.attempts + 1,
    status = 'open',
    run_id = excluded.run_id,
    reason = excluded.reason,
    message = excluded.message,
    sqlstate = excluded.sqlstate,
    payload = excluded.payload,
    key = excluded.key,
    headers = excluded.headers,
    raw = excluded.raw
