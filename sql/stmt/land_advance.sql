-- Counts a chunk and moves its positions by compare-and-set; tells whether the run is to be cancelled.
-- $1 uuid: run; $2 bigint: fence; $3 uuid: chunk; $4 jsonb: one object a partition.
SELECT a.cancel_requested FROM connector._advance($1, $2, $3, $4::jsonb) AS a
