-- Notes columns that a run added in the column history; one that is made anew after it was dropped gets a new date.
-- $1 uuid: connector; $2 bigint: tenant; $3 uuid: run; $4 text[]: columns; $5 text[]: fields; $6 text[]: types.
INSERT INTO connector._column (connector_id, column_name, tenant_id, field, data_type, added_by_run)
SELECT $1::uuid, u.column_name, $2::bigint, u.field, u.data_type, $3::uuid
FROM unnest($4::text[], $5::text[], $6::text[]) AS u (column_name, field, data_type)
ON CONFLICT (connector_id, column_name) DO UPDATE
SET field = excluded.field, data_type = excluded.data_type, added_at = excluded.added_at, added_by_run = excluded.added_by_run
