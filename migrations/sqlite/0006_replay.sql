-- What the decision on a session was made from, as JSON, so that it can be made
-- again by later rules; '' for sessions from before.
ALTER TABLE sessions ADD COLUMN facts TEXT NOT NULL DEFAULT '';
