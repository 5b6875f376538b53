-- The data for checking a claim, and the permissions of sessions.

-- JSON list of protected files whose change a person has to approve; '' for other comments.
ALTER TABLE task_comments ADD COLUMN review TEXT NOT NULL DEFAULT '';
CREATE INDEX idx_task_comments_review ON task_comments(id) WHERE holding = 1 AND review <> '';

-- The results of the project's and the feature's verification before a task's first session.
CREATE TABLE baselines (
  task_id INTEGER PRIMARY KEY REFERENCES tasks(id) ON DELETE CASCADE,
  results TEXT NOT NULL,
  created TEXT NOT NULL
) STRICT;

-- The newest result of a command for a state of the work tree: one task's verification is
-- the next one's baseline as long as nothing has changed.
CREATE TABLE verifications (
  content TEXT NOT NULL,                 -- digest of the work tree
  command TEXT NOT NULL,
  result  TEXT NOT NULL,
  created TEXT NOT NULL,
  PRIMARY KEY (content, command)
) STRICT;
CREATE INDEX idx_verifications_created ON verifications(created);

-- Protected files, as people left them and as they are since the last session.
CREATE TABLE protected_files (
  path     TEXT PRIMARY KEY,
  approved TEXT NOT NULL,                -- digest of the content; '' if there is no such file
  seen     TEXT NOT NULL
) STRICT;

-- The use of the account's usage windows, as the agent last reported it.
CREATE TABLE usage_windows (
  name        TEXT PRIMARY KEY,          -- "five_hour", "seven_day", …
  utilization REAL NOT NULL,             -- 0 to 1
  resets_at   TEXT NOT NULL DEFAULT '',
  seen        TEXT NOT NULL
) STRICT;

-- The cost of a day, over all runs.
CREATE INDEX idx_sessions_completed ON sessions(completed_at, cost_usd);

-- Every request of an agent to use a tool, and the answer.
CREATE TABLE permission_requests (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id    INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  session_id TEXT NOT NULL,
  tool       TEXT NOT NULL,
  input      TEXT NOT NULL,              -- the beginning of it, as JSON text
  decision   TEXT NOT NULL CHECK (decision IN ('allow','deny','ask')),
  rule       TEXT NOT NULL DEFAULT '',   -- the rule that decided
  reason     TEXT NOT NULL DEFAULT '',   -- what the agent was told
  decided_by TEXT NOT NULL DEFAULT '',   -- a person's name; '' for the rules
  created    TEXT NOT NULL,
  decided_at TEXT NOT NULL DEFAULT ''    -- '' while a person is waited for
) STRICT;
CREATE INDEX idx_permission_requests_session ON permission_requests(session_id, id);
CREATE INDEX idx_permission_requests_open ON permission_requests(id) WHERE decided_at = '';
