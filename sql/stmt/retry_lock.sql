-- Locks a dead letter that a run decodes again and gives its state under the lock; no row where the letter is gone.
-- $1 uuid: run; $2 uuid: letter.
SELECT t.fence, t.done, t.chunk, d.status = 'open'
FROM connector._retry AS t
JOIN connector._dlq AS d ON d.id = t.letter_id
WHERE t.run_id = $1 AND t.letter_id = $2
FOR UPDATE
