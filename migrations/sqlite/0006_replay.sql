-- The facts of the decision on a session, as JSON, so that later rules can decide again;
-- '' for older sessions.
ALTER TABLE sessions ADD COLUMN facts TEXT NOT NULL DEFAULT '';
