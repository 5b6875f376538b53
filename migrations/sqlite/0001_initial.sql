-- Times are RFC 3339 texts in UTC with milliseconds, lists and objects are JSON
-- texts, '' is "none" unless a column says otherwise.

CREATE TABLE features (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  name        TEXT NOT NULL UNIQUE,
  description TEXT NOT NULL DEFAULT '',
  learnings   TEXT NOT NULL DEFAULT '',   -- written by people
  verify      TEXT NOT NULL DEFAULT '[]',
  created     TEXT NOT NULL,
  updated     TEXT NOT NULL
) STRICT;

CREATE TABLE disciplines (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  name         TEXT NOT NULL UNIQUE,
  instructions TEXT NOT NULL DEFAULT '',
  model        TEXT NOT NULL DEFAULT '',
  created      TEXT NOT NULL,
  updated      TEXT NOT NULL
) STRICT;

CREATE TABLE tasks (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  feature_id      INTEGER REFERENCES features(id) ON DELETE SET NULL,
  discipline_id   INTEGER REFERENCES disciplines(id) ON DELETE SET NULL,
  title           TEXT NOT NULL CHECK (length(title) > 0),
  description     TEXT NOT NULL DEFAULT '',
  acceptance      TEXT NOT NULL DEFAULT '[]',
  verify          TEXT NOT NULL DEFAULT '[]',
  priority        INTEGER NOT NULL DEFAULT 2 CHECK (priority BETWEEN 0 AND 4),
  rank            INTEGER NOT NULL DEFAULT 0, -- set by `task move`; the lowest goes first
  status          TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('proposed','pending','in_progress','needs_input','blocked','completed','failed','rejected','cancelled')),
  status_reason   TEXT NOT NULL DEFAULT '',
  origin          TEXT NOT NULL DEFAULT 'human' CHECK (origin IN ('human','agent')),
  model           TEXT NOT NULL DEFAULT '',
  stuck_count     INTEGER NOT NULL DEFAULT 0,
  verify_failures INTEGER NOT NULL DEFAULT 0,
  attempts        INTEGER NOT NULL DEFAULT 0,
  prompt_too_long INTEGER NOT NULL DEFAULT 0,
  external_id     TEXT NOT NULL DEFAULT '',
  normal_title    TEXT NOT NULL,              -- the title normalized for comparisons
  source_comment  INTEGER,                    -- the suggest signal that it came from
  claimed_by      TEXT NOT NULL DEFAULT '',
  claim_expires   TEXT NOT NULL DEFAULT '',
  created         TEXT NOT NULL,
  updated         TEXT NOT NULL,
  completed_at    TEXT NOT NULL DEFAULT ''
) STRICT;
-- Picking reads its first entry; the order is that of the queue.
CREATE INDEX idx_tasks_queue ON tasks(priority, rank, (CASE WHEN attempts > 0 THEN 0 ELSE 1 END), id) WHERE status = 'pending';
CREATE INDEX idx_tasks_status ON tasks(status, id);
CREATE INDEX idx_tasks_feature ON tasks(feature_id, id);
CREATE INDEX idx_tasks_title ON tasks(normal_title);
CREATE INDEX idx_tasks_external ON tasks(external_id) WHERE external_id <> '';

CREATE TABLE task_dependencies (
  task_id    INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  depends_on INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  source     TEXT NOT NULL CHECK (source IN ('human','signal','import')),
  created    TEXT NOT NULL,
  PRIMARY KEY (task_id, depends_on),
  CHECK (task_id <> depends_on)
) STRICT;
CREATE INDEX idx_task_dependencies_upstream ON task_dependencies(depends_on);

CREATE TABLE task_comments (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id         INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  session_id      TEXT,
  author          TEXT NOT NULL,
  author_kind     TEXT NOT NULL DEFAULT 'human' CHECK (author_kind IN ('human','agent')),
  kind            TEXT CHECK (kind IN ('question','blocker','note','reference','nack')),
  rationale       TEXT NOT NULL DEFAULT '',
  signal_verb     TEXT CHECK (signal_verb IN ('done','partial','stuck','ask','flag','learned','suggest','blocked')),
  signal_payload  TEXT,
  signal_answered TEXT,
  agent_task_id   TEXT NOT NULL DEFAULT '',   -- RALPH_AGENT_TASK_ID, where a client sets it
  body            TEXT NOT NULL,
  parent_id       INTEGER REFERENCES task_comments(id) ON DELETE CASCADE,
  holding         INTEGER NOT NULL DEFAULT 0 CHECK (holding IN (0, 1)), -- an open question or blocker
  hold_reason     TEXT NOT NULL DEFAULT '',
  resolved_at     TEXT NOT NULL DEFAULT '',
  resolved_by     TEXT NOT NULL DEFAULT '',
  decision        TEXT NOT NULL DEFAULT '',
  answered_at     TEXT NOT NULL DEFAULT '',
  answered_by     TEXT NOT NULL DEFAULT '',
  delivered_at    TEXT NOT NULL DEFAULT '',   -- handed to a running session
  created         TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),

  -- Every rule has the form (...) IS TRUE: a CHECK passes if it is NULL.
  CONSTRAINT comment_or_signal CHECK (((signal_verb IS NULL) <> (kind IS NULL)) IS TRUE),
  CONSTRAINT payload_with_verb CHECK (((signal_verb IS NULL) = (signal_payload IS NULL)) IS TRUE),
  CONSTRAINT payload_is_object CHECK ((signal_payload IS NULL OR (json_valid(signal_payload) AND json_type(signal_payload) = 'object')) IS TRUE),
  CONSTRAINT only_asks_are_answered CHECK ((signal_answered IS NULL OR signal_verb = 'ask') IS TRUE),
  CONSTRAINT signal_has_session CHECK ((signal_verb IS NULL OR session_id IS NOT NULL) IS TRUE),
  CONSTRAINT rationale_given CHECK ((kind IS NULL OR kind NOT IN ('blocker','nack') OR trim(rationale) <> '') IS TRUE),
  CONSTRAINT done_fields CHECK ((signal_verb IS NULL OR signal_verb <> 'done'
    OR (json_type(signal_payload, '$.summary') = 'text' AND trim(json_extract(signal_payload, '$.summary')) <> '')) IS TRUE),
  CONSTRAINT partial_fields CHECK ((signal_verb IS NULL OR signal_verb <> 'partial'
    OR (json_type(signal_payload, '$.summary') = 'text' AND trim(json_extract(signal_payload, '$.summary')) <> ''
    AND json_type(signal_payload, '$.remaining') = 'text' AND trim(json_extract(signal_payload, '$.remaining')) <> '')) IS TRUE),
  CONSTRAINT stuck_fields CHECK ((signal_verb IS NULL OR signal_verb <> 'stuck'
    OR (json_type(signal_payload, '$.reason') = 'text' AND trim(json_extract(signal_payload, '$.reason')) <> '')) IS TRUE),
  CONSTRAINT ask_fields CHECK ((signal_verb IS NULL OR signal_verb <> 'ask'
    OR (json_type(signal_payload, '$.question') = 'text' AND trim(json_extract(signal_payload, '$.question')) <> ''
    AND json_type(signal_payload, '$.blocking') IN ('true','false')
    AND coalesce(json_type(signal_payload, '$.options'), 'array') = 'array'
    AND coalesce(json_type(signal_payload, '$.preferred'), 'text') = 'text')) IS TRUE),
  CONSTRAINT flag_fields CHECK ((signal_verb IS NULL OR signal_verb <> 'flag'
    OR (json_type(signal_payload, '$.what') = 'text' AND trim(json_extract(signal_payload, '$.what')) <> ''
    AND json_extract(signal_payload, '$.severity') IN ('info','warning','blocking')
    AND json_extract(signal_payload, '$.category') IN ('bug','stale','contradiction','ambiguity','overlap','performance','security','incomplete_prior'))) IS TRUE),
  CONSTRAINT learned_fields CHECK ((signal_verb IS NULL OR signal_verb <> 'learned'
    OR (json_type(signal_payload, '$.text') = 'text' AND trim(json_extract(signal_payload, '$.text')) <> ''
    AND json_extract(signal_payload, '$.kind') IN ('discovery','decision','convention')
    AND coalesce(json_type(signal_payload, '$.rationale'), 'text') = 'text'
    AND coalesce(json_extract(signal_payload, '$.scope'), 'feature') IN ('project','feature','task'))) IS TRUE),
  CONSTRAINT suggest_fields CHECK ((signal_verb IS NULL OR signal_verb <> 'suggest'
    OR (json_type(signal_payload, '$.what') = 'text' AND trim(json_extract(signal_payload, '$.what')) <> ''
    AND json_extract(signal_payload, '$.kind') IN ('new_task','split','refactor','alternative','deprecate')
    AND json_type(signal_payload, '$.why') = 'text' AND trim(json_extract(signal_payload, '$.why')) <> ''
    AND coalesce(json_type(signal_payload, '$.feature'), 'text') = 'text')) IS TRUE),
  CONSTRAINT blocked_fields CHECK ((signal_verb IS NULL OR signal_verb <> 'blocked'
    OR (json_type(signal_payload, '$.on') = 'text' AND trim(json_extract(signal_payload, '$.on')) <> ''
    AND json_extract(signal_payload, '$.kind') IN ('upstream_task','external')
    AND coalesce(json_type(signal_payload, '$.detail'), 'text') = 'text')) IS TRUE)
) STRICT;
CREATE INDEX idx_task_comments_task ON task_comments(task_id);
CREATE INDEX idx_task_comments_session ON task_comments(session_id);
CREATE INDEX idx_task_comments_verb ON task_comments(signal_verb);
CREATE INDEX idx_task_comments_holding ON task_comments(task_id) WHERE holding = 1;
CREATE INDEX idx_task_comments_undelivered ON task_comments(task_id, id) WHERE delivered_at = '' AND signal_verb IS NULL AND author_kind = 'human';
CREATE INDEX idx_task_comments_flags ON task_comments(task_id, id) WHERE signal_verb = 'flag';
CREATE INDEX idx_task_comments_asks ON task_comments(task_id, id) WHERE signal_verb = 'ask';
CREATE INDEX idx_task_comments_suggest ON task_comments(id) WHERE signal_verb = 'suggest' AND resolved_at = '';
CREATE INDEX idx_task_comments_nack ON task_comments(id) WHERE kind = 'nack' AND resolved_at = '';

-- The flat columns of the earliest design, for queries by people.
CREATE VIEW task_signals AS
SELECT c.id, c.task_id,
  (SELECT d.id FROM disciplines d WHERE d.name = c.author) AS discipline_id,
  c.session_id, c.signal_verb AS verb,
  json_extract(c.signal_payload, '$.summary') AS summary,
  json_extract(c.signal_payload, '$.remaining') AS remaining,
  json_extract(c.signal_payload, '$.reason') AS reason,
  json_extract(c.signal_payload, '$.question') AS question,
  (SELECT group_concat(o.value, char(10)) FROM json_each(c.signal_payload, '$.options') o) AS options,
  json_extract(c.signal_payload, '$.preferred') AS preferred,
  json_extract(c.signal_payload, '$.blocking') AS blocking,
  json_extract(c.signal_payload, '$.what') AS what,
  json_extract(c.signal_payload, '$.severity') AS severity,
  json_extract(c.signal_payload, '$.category') AS category,
  json_extract(c.signal_payload, '$.kind') AS kind,
  json_extract(c.signal_payload, '$.scope') AS scope,
  json_extract(c.signal_payload, '$.text') AS text,
  json_extract(c.signal_payload, '$.rationale') AS rationale,
  json_extract(c.signal_payload, '$.why') AS why,
  (SELECT f.id FROM features f WHERE f.name = json_extract(c.signal_payload, '$.feature')) AS feature_id,
  json_extract(c.signal_payload, '$.on') AS "on",
  json_extract(c.signal_payload, '$.detail') AS detail,
  c.signal_answered AS answer,
  c.created
FROM task_comments c WHERE c.signal_verb IS NOT NULL;

CREATE TABLE learnings (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  text       TEXT NOT NULL CHECK (length(text) > 0),
  kind       TEXT NOT NULL CHECK (kind IN ('discovery','decision','convention')),
  scope      TEXT NOT NULL CHECK (scope IN ('project','feature','task')),
  feature_id INTEGER REFERENCES features(id) ON DELETE CASCADE,
  task_id    INTEGER REFERENCES tasks(id) ON DELETE CASCADE,
  rationale  TEXT NOT NULL DEFAULT '',
  origin     TEXT NOT NULL CHECK (origin IN ('human','agent')),
  author     TEXT NOT NULL DEFAULT '',
  times_seen INTEGER NOT NULL DEFAULT 1,
  last_seen  TEXT NOT NULL,
  status     TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active','forgotten')),
  created    TEXT NOT NULL
) STRICT;
CREATE INDEX idx_learnings_scope ON learnings(scope, feature_id, task_id) WHERE status = 'active';

CREATE TABLE learning_comments (
  learning_id INTEGER NOT NULL REFERENCES learnings(id) ON DELETE CASCADE,
  comment_id  INTEGER NOT NULL REFERENCES task_comments(id) ON DELETE CASCADE,
  PRIMARY KEY (learning_id, comment_id)
) STRICT;

CREATE TABLE runs (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  pid          INTEGER NOT NULL,
  started_at   TEXT NOT NULL,
  ended_at     TEXT NOT NULL DEFAULT '',
  control      TEXT NOT NULL DEFAULT '' CHECK (control IN ('','pause','stop','stop_now','go_on')),
  state        TEXT NOT NULL DEFAULT 'running' CHECK (state IN ('running','waiting','paused','ending','ended')),
  state_reason TEXT NOT NULL DEFAULT '',
  wait_until   TEXT NOT NULL DEFAULT '',
  limits       TEXT NOT NULL DEFAULT '{}',
  sessions     INTEGER NOT NULL DEFAULT 0,
  cost_usd     REAL NOT NULL DEFAULT 0,
  exit_status  INTEGER,
  reason       TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX idx_runs_open ON runs(id) WHERE ended_at = '';

CREATE TABLE sessions (
  id              TEXT PRIMARY KEY,            -- a UUID, the agent's own session id
  task_id         INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  run_id          INTEGER REFERENCES runs(id) ON DELETE SET NULL,
  attempt         INTEGER NOT NULL,
  origin          TEXT NOT NULL DEFAULT 'loop' CHECK (origin IN ('loop','human')),
  discipline      TEXT NOT NULL DEFAULT '',
  current_state   TEXT NOT NULL DEFAULT 'idle' CHECK (current_state IN ('idle','analyzing','implementing','testing','committing','reviewing','done','failed')),
  state_history   TEXT NOT NULL DEFAULT '[]',
  ending          TEXT NOT NULL DEFAULT '',
  outcome         TEXT CHECK (outcome IN ('success','failure','timeout')),
  outcome_reason  TEXT NOT NULL DEFAULT '',
  closing_verb    TEXT CHECK (closing_verb IN ('done','partial','stuck')),
  model           TEXT NOT NULL DEFAULT '',
  turns           INTEGER NOT NULL DEFAULT 0,
  cost_usd        REAL NOT NULL DEFAULT 0,
  cost_known      INTEGER NOT NULL DEFAULT 0 CHECK (cost_known IN (0, 1)),
  cost_limit_usd  REAL NOT NULL DEFAULT 0,
  tokens          TEXT NOT NULL DEFAULT '{}',
  exit_status     INTEGER,
  last_words      TEXT NOT NULL DEFAULT '',
  stderr_tail     TEXT NOT NULL DEFAULT '',
  denials         TEXT NOT NULL DEFAULT '[]',
  leftovers       TEXT NOT NULL DEFAULT '[]',
  snapshot_before TEXT NOT NULL DEFAULT '{}',  -- state of the work tree at the start
  hashes_before   TEXT NOT NULL DEFAULT '{}',
  unchanged       TEXT NOT NULL DEFAULT '[]',
  files           TEXT NOT NULL DEFAULT '[]',
  commits         TEXT NOT NULL DEFAULT '[]',
  verify          TEXT NOT NULL DEFAULT '[]',
  decision        TEXT NOT NULL DEFAULT '',
  stop_request    TEXT NOT NULL DEFAULT '' CHECK (stop_request IN ('','cancel','contract')),
  stop_by         TEXT NOT NULL DEFAULT '',
  people_edited   INTEGER NOT NULL DEFAULT 0 CHECK (people_edited IN (0, 1)), -- its task or feature, while it ran
  started_at      TEXT NOT NULL,
  updated_at      TEXT NOT NULL,
  completed_at    TEXT NOT NULL DEFAULT ''     -- set when it is settled; from then on its calls are refused
) STRICT;
CREATE INDEX idx_sessions_task ON sessions(task_id, started_at);
CREATE INDEX idx_sessions_started ON sessions(started_at);
CREATE INDEX idx_sessions_open ON sessions(id) WHERE completed_at = '';
CREATE INDEX idx_sessions_run ON sessions(run_id);

-- One row: what is known of the agent across runs.
CREATE TABLE agent_state (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  wait_until TEXT NOT NULL DEFAULT '',   -- no session before this time
  reason     TEXT NOT NULL DEFAULT '',
  failures   INTEGER NOT NULL DEFAULT 0  -- errors in a row, for the back-off
) STRICT;
INSERT INTO agent_state (id) VALUES (1);

CREATE TABLE events (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  type       TEXT NOT NULL,
  task_id    INTEGER,
  session_id TEXT NOT NULL DEFAULT '',
  run_id     INTEGER,
  payload    TEXT NOT NULL DEFAULT '{}',
  created    TEXT NOT NULL
) STRICT;
CREATE INDEX idx_events_task ON events(task_id, id);
