-- Tells whether a run decodes dead letters again, instead of reading a topic.
-- $1 uuid: run.
SELECT r.started_by = 'retry' FROM connector._run AS r WHERE r.run_id = $1
