-- Locks the positions that a chunk moves, in partition order, and gives them as they are under the lock.
-- $1 uuid: connector; $2 integer[]: partitions.
SELECT c.partition, c.next_offset, c.fence, c.last_chunk
FROM connector._cursor AS c
WHERE c.connector_id = $1 AND c.partition = ANY ($2::integer[])
ORDER BY c.partition
FOR UPDATE
