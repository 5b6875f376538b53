-- The work of sessions in slots, on its way into the target branch.

-- A task may be `merging`: done and verified, but its change is not in the target yet. SQLite
-- cannot change a CHECK; a new column of the same name replaces the old one.
DROP INDEX idx_tasks_queue;
DROP INDEX idx_tasks_status;
DROP INDEX idx_tasks_lost;
ALTER TABLE tasks RENAME COLUMN status TO old_status;
ALTER TABLE tasks ADD COLUMN status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('proposed','pending','in_progress','merging','needs_input','blocked','completed','failed','rejected','cancelled'));
UPDATE tasks SET status = old_status;
ALTER TABLE tasks DROP COLUMN old_status;
CREATE INDEX idx_tasks_queue ON tasks(status, priority, rank, (CASE WHEN attempts > 0 THEN 0 ELSE 1 END), id);
CREATE INDEX idx_tasks_status ON tasks(status, id);
CREATE INDEX idx_tasks_lost ON tasks(status, not_before, id) WHERE lost_count > 0;
ALTER TABLE tasks ADD COLUMN bounces INTEGER NOT NULL DEFAULT 0;

CREATE TABLE changes (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id     INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  session_id  TEXT NOT NULL,
  base        TEXT NOT NULL,              -- commits, and a tree
  head        TEXT NOT NULL,
  tree        TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('held','queued','building','verifying','landing','merged','bounced','dropped')),
  from_commit TEXT NOT NULL DEFAULT '',   -- of the commit point, when its landing began
  to_commit   TEXT NOT NULL DEFAULT '',   -- that it is to become
  reason      TEXT NOT NULL DEFAULT '',
  conflicts   TEXT NOT NULL DEFAULT '[]', -- files, JSON
  created     TEXT NOT NULL,
  updated     TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX changes_one_open ON changes(task_id) WHERE state NOT IN ('merged','bounced','dropped');
CREATE INDEX idx_changes_task ON changes(task_id, id);
CREATE INDEX idx_changes_state ON changes(state, id);

-- One session at a time works on a task.
CREATE UNIQUE INDEX sessions_one_open ON sessions(task_id) WHERE completed_at = '';

-- Whether changes are merged: why not, and until when a remote is left alone.
CREATE TABLE merge_queue (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  target     TEXT NOT NULL DEFAULT '',    -- the branch into which the queue goes
  paused     TEXT NOT NULL DEFAULT '',
  wait_until TEXT NOT NULL DEFAULT '',
  failures   INTEGER NOT NULL DEFAULT 0,
  behind     TEXT NOT NULL DEFAULT ''     -- why the target branch could not follow; '' if it has
) STRICT;
INSERT INTO merge_queue (id) VALUES (1);
