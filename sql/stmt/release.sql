-- Hand a run back; another sidecar, or this one, takes it up again.
SELECT connector._release($1, $2)
