-- People claim tasks and work on them with a chat.
ALTER TABLE sessions ADD COLUMN branch TEXT NOT NULL DEFAULT '';   -- of the work tree, when a person claimed the task
ALTER TABLE sessions ADD COLUMN progress TEXT NOT NULL DEFAULT ''; -- what a person's chat reported last, as JSON
CREATE INDEX idx_sessions_people ON sessions(started_at) WHERE origin = 'human';
