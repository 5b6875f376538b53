-- What is completed by a recorded decision need not be looked at again by each command.
ALTER TABLE tasks ADD COLUMN accepted INTEGER NOT NULL DEFAULT 0;
CREATE INDEX idx_tasks_unaccepted ON tasks(id) WHERE status = 'completed' AND accepted = 0;
-- Commands for the branch of a change run once, even if ralph is killed meanwhile (merge.after).
ALTER TABLE changes ADD COLUMN after_begun INTEGER NOT NULL DEFAULT 0;
