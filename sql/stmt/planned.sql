-- What a run planned, with the position it has reached, in partition order.
SELECT p.partition, p.start_offset, p.target_offset, p.next_offset, COALESCE(p.lost_from, -1), COALESCE(p.lost_to, -1)
FROM connector._run_partition AS p
WHERE p.run_id = $1
ORDER BY p.partition
