-- Records a rotation for one tenant ($1): the action ($2), its detail ($3).
SELECT connector._audit($2::text, NULL, $1::bigint, $3::jsonb)
