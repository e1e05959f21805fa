-- Give runs whose sidecar is gone back to the queue.
SELECT connector._requeue_orphans()
