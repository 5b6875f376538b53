-- Proposed changes of a task's definition. Only people decide on them; rejected and superseded
-- ones are kept.
CREATE TABLE task_amendments (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id          INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  session_id       TEXT,
  author           TEXT NOT NULL,
  author_kind      TEXT NOT NULL CHECK (author_kind IN ('human','agent')),
  patch            TEXT NOT NULL,
  rationale        TEXT NOT NULL,
  status           TEXT NOT NULL DEFAULT 'proposed' CHECK (status IN ('proposed','approved','rejected','superseded')),
  decision_note    TEXT NOT NULL DEFAULT '',
  decided_by       TEXT NOT NULL DEFAULT '',
  decided_at       TEXT NOT NULL DEFAULT '',
  applied_snapshot TEXT NOT NULL DEFAULT '',   -- the task before it was applied, as JSON
  rolled_back_at   TEXT NOT NULL DEFAULT '',
  rolled_back_by   TEXT NOT NULL DEFAULT '',
  created          TEXT NOT NULL,
  CONSTRAINT patch_is_object CHECK ((json_valid(patch) AND json_type(patch) = 'object') IS TRUE),
  CONSTRAINT rationale_given CHECK ((trim(rationale) <> '') IS TRUE),
  CONSTRAINT note_given CHECK ((status <> 'rejected' OR trim(decision_note) <> '') IS TRUE),
  CONSTRAINT snapshot_kept CHECK ((status <> 'approved' OR json_valid(applied_snapshot)) IS TRUE)
) STRICT;
CREATE INDEX idx_task_amendments_task ON task_amendments(task_id, id);
CREATE INDEX idx_task_amendments_open ON task_amendments(id) WHERE status = 'proposed';

CREATE TRIGGER task_amendments_read_only BEFORE UPDATE ON task_amendments
WHEN OLD.status IN ('rejected','superseded')
BEGIN SELECT RAISE(ABORT, 'a rejected or superseded amendment is read-only'); END;
CREATE TRIGGER task_amendments_kept BEFORE DELETE ON task_amendments
WHEN OLD.status IN ('rejected','superseded')
BEGIN SELECT RAISE(ABORT, 'a rejected or superseded amendment is read-only'); END;

-- For the limit of three open blockers of an author on a task.
CREATE INDEX task_comments_open_blockers_idx ON task_comments(task_id, author) WHERE kind = 'blocker' AND resolved_at = '';
