-- Counts a retried dead letter and closes it where it is none again; tells whether the run is to be cancelled.
-- $1 uuid: run; $2 bigint: fence; $3 uuid: chunk; $4 uuid: letter; $5 jsonb: one object with the counters.
SELECT a.cancel_requested FROM connector._retry_done($1, $2, $3, $4, $5::jsonb) AS a
