-- Take the lease of a runs connector; says what the caller is to do.
SELECT outcome, connector_id, connector, tenant_id, table_name, spec, mapping_version, fence, cluster_id, topic, topic_id, seek_to, poison_chunks, planned, table_made
FROM connector._claim($1, $2, $3)
