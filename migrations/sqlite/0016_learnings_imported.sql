-- The words with which a learning was imported: one that was edited here is known
-- again when its file is imported again.
ALTER TABLE learnings ADD COLUMN imported TEXT NOT NULL DEFAULT '';
