-- What a session left that a person's approval completed is still to be committed (git.commit).
ALTER TABLE sessions ADD COLUMN commit_due INTEGER NOT NULL DEFAULT 0;
CREATE INDEX idx_sessions_commit_due ON sessions(id) WHERE commit_due = 1;
