-- When the values of an ended run's variables were removed. Their keys and sources stay.
ALTER TABLE runs ADD COLUMN variables_removed_at timestamptz;

CREATE INDEX runs_with_values ON runs (completed_at)
    WHERE completed_at IS NOT NULL AND (variables_sealed IS NOT NULL OR pinned_variables_sealed IS NOT NULL);
CREATE INDEX finished_tasks_with_login ON finished_tasks (finished_at) WHERE payload ->> 'login_sealed' IS NOT NULL;
