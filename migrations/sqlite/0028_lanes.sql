-- Several sessions of a run at once: the lane of each, and why a lane is idle.
ALTER TABLE sessions ADD COLUMN lane INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN idle TEXT NOT NULL DEFAULT '';
-- The files that a task may touch, as globs, and the maximum number of parallel sessions on a discipline's tasks (0: unbounded).
ALTER TABLE tasks ADD COLUMN files TEXT NOT NULL DEFAULT '[]';
ALTER TABLE disciplines ADD COLUMN parallel INTEGER NOT NULL DEFAULT 0;
