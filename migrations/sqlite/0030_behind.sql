-- How far the person's branch is behind what has landed, and the command that updates it.
ALTER TABLE merge_queue ADD COLUMN ahead INTEGER NOT NULL DEFAULT 0;
ALTER TABLE merge_queue ADD COLUMN command TEXT NOT NULL DEFAULT '';
