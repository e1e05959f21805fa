-- End a run and give up its lease; false where the lease is no longer ours.
SELECT connector._end($1, $2, $3, $4, $5, $6, $7, $8)
