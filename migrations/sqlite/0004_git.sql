-- The uncommitted files that a session found, and those of them that are gone at its end.
ALTER TABLE sessions ADD COLUMN uncommitted TEXT NOT NULL DEFAULT '[]'; -- files that were not committed when it began
ALTER TABLE sessions ADD COLUMN snapshot_id INTEGER NOT NULL DEFAULT 0; -- the saved state that has them; 0 if none was needed
ALTER TABLE sessions ADD COLUMN gone TEXT NOT NULL DEFAULT '[]';        -- those that are not there any more
