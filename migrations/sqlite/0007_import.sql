-- An imported task as it was at its last import, as JSON. It tells changes in the file from
-- changes that people made here.
ALTER TABLE tasks ADD COLUMN imported TEXT NOT NULL DEFAULT '';
-- The source of external_id: several files may have the same id.
ALTER TABLE tasks ADD COLUMN external_source TEXT NOT NULL DEFAULT '';
