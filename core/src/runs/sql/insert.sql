WITH run AS (
    INSERT INTO runs (id, business_unit_id, workspace_id, command, waiting, branch, message, variables_sealed,
                      auto_approve_if_no_changes, auto_approve_skip_apply, allow_destroy, triggered_by,
                      trigger_source, promoted_from, traceparent)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
    RETURNING id, business_unit_id
)
INSERT INTO run_steps (business_unit_id, run_id, position, phase, name)
SELECT run.business_unit_id, run.id, step.position, step.phase, step.name
FROM run, unnest($16::smallint[], $17::text[], $18::text[]) AS step (position, phase, name)
