-- Remembers that a connector's table was made, so that it is never made anew under stored positions; no row when the lease is another's.
-- $1 uuid: connector; $2 bigint: fence.
UPDATE connector._endpoint AS e
SET table_made = true
WHERE e.connector_id = $1 AND e.fence = $2
RETURNING e.table_made
