-- The suggested tasks that entered the queue without a person's approval, whose number is limited.
ALTER TABLE tasks ADD COLUMN auto_approved INTEGER NOT NULL DEFAULT 0 CHECK (auto_approved IN (0, 1));
CREATE INDEX idx_tasks_auto_approved ON tasks(created) WHERE origin = 'agent' AND auto_approved = 1;
