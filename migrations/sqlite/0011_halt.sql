-- Who asked for this one session to be stopped; its task goes back to the queue.
ALTER TABLE sessions ADD COLUMN halted_by TEXT NOT NULL DEFAULT '';
