-- Add a line to a runs log.
SELECT connector._say($1, $2, $3)
