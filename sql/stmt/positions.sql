-- The stored positions of a connector, in partition order.
SELECT c.partition, c.next_offset, c.leader_epoch, c.sought
FROM connector._cursor AS c
WHERE c.connector_id = $1
ORDER BY c.partition
