-- Say that this sidecar lives and renew its leases; returns the runs it must act on.
SELECT run_id, state FROM connector._heartbeat($1, $2, $3, $4, $5)
