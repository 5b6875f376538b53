-- Commands that check a task and that no session sees, a JSON list of title and command.
ALTER TABLE tasks ADD COLUMN hidden TEXT NOT NULL DEFAULT '[]';
