-- No longer be the sidecar that fires the schedules.
SELECT connector._resign($1)
