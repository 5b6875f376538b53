-- The worker that pulled the task; '' for the loop's own sessions.
ALTER TABLE sessions ADD COLUMN worker TEXT NOT NULL DEFAULT '';
CREATE INDEX idx_sessions_workers ON sessions(id) WHERE completed_at = '' AND worker <> '';
