-- Where a session works: several work trees share one queue.
ALTER TABLE sessions ADD COLUMN dir TEXT NOT NULL DEFAULT '';                                 -- the project's root there; '' if that is not known
ALTER TABLE sessions ADD COLUMN shared INTEGER NOT NULL DEFAULT 0 CHECK (shared IN (0, 1)); -- another session worked there meanwhile
