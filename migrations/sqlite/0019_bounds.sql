-- Consecutive lost sessions of a task, and when it is tried again after them.
ALTER TABLE tasks ADD COLUMN lost_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN not_before TEXT NOT NULL DEFAULT '';
CREATE INDEX idx_tasks_lost ON tasks(status, not_before, id) WHERE lost_count > 0;
-- Why a session that has ended could not be settled yet; '' if nobody tried.
ALTER TABLE sessions ADD COLUMN unsettled TEXT NOT NULL DEFAULT '';
