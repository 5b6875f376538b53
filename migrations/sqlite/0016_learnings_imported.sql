-- The text with which a learning was imported: it is recognized at the next import even if it
-- was edited here.
ALTER TABLE learnings ADD COLUMN imported TEXT NOT NULL DEFAULT '';
