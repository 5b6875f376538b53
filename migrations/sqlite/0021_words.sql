-- When a permission request is denied automatically, so that people see how long they have.
ALTER TABLE permission_requests ADD COLUMN expires TEXT NOT NULL DEFAULT '';

-- The feature learnings of tasks without a feature used to belong to the task; such tasks are one
-- group now.
UPDATE learnings SET scope = 'feature' WHERE scope = 'task' AND origin = 'agent' AND feature_id IS NULL
  AND id IN (SELECT lc.learning_id FROM learning_comments lc JOIN task_comments c ON c.id = lc.comment_id
    WHERE c.signal_verb = 'learned' AND coalesce(json_extract(c.signal_payload, '$.scope'), 'feature') = 'feature');

-- What waits for a person.
CREATE INDEX idx_task_comments_open_flags ON task_comments(id) WHERE signal_verb = 'flag' AND resolved_at = '';
CREATE INDEX idx_task_comments_open_questions ON task_comments(id) WHERE kind = 'question' AND resolved_at = '';
CREATE INDEX idx_task_comments_unanswered ON task_comments(id) WHERE signal_verb = 'ask' AND signal_answered IS NULL;
