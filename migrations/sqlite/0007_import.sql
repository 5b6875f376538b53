-- What an imported task was when it was imported last, as JSON: what has changed
-- there since is told from what people have changed here.
ALTER TABLE tasks ADD COLUMN imported TEXT NOT NULL DEFAULT '';
-- Where external_id comes from: one id may be in several files.
ALTER TABLE tasks ADD COLUMN external_source TEXT NOT NULL DEFAULT '';
