-- The schema. Times are RFC 3339 texts in UTC with milliseconds, lists and objects are JSON
-- texts, '' is "none" unless a column says otherwise.

CREATE TABLE features (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  name        TEXT NOT NULL UNIQUE,
  description TEXT NOT NULL DEFAULT '',
  learnings   TEXT NOT NULL DEFAULT '', -- written by people
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
  updated      TEXT NOT NULL,
  parallel     INTEGER NOT NULL DEFAULT 0, -- sessions at once; 0 is no limit
  agent        TEXT NOT NULL DEFAULT '', -- by its name in ralph.yaml
  review       TEXT NOT NULL DEFAULT '' -- as for a task
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
  status          TEXT NOT NULL DEFAULT 'pending' CHECK (status IN (
    'proposed','pending','in_progress','merging','needs_input','blocked','completed','failed','rejected','cancelled')),
  status_reason   TEXT NOT NULL DEFAULT '',
  origin          TEXT NOT NULL DEFAULT 'human' CHECK (origin IN ('human','agent')),
  model           TEXT NOT NULL DEFAULT '',
  stuck_count     INTEGER NOT NULL DEFAULT 0,
  verify_failures INTEGER NOT NULL DEFAULT 0,
  attempts        INTEGER NOT NULL DEFAULT 0,
  prompt_too_long INTEGER NOT NULL DEFAULT 0,
  external_id     TEXT NOT NULL DEFAULT '',
  normal_title    TEXT NOT NULL, -- the title normalized for comparisons
  source_comment  INTEGER, -- the suggest signal that it came from
  claimed_by      TEXT NOT NULL DEFAULT '',
  claim_expires   TEXT NOT NULL DEFAULT '',
  created         TEXT NOT NULL,
  updated         TEXT NOT NULL,
  completed_at    TEXT NOT NULL DEFAULT '',
  imported        TEXT NOT NULL DEFAULT '',
  external_source TEXT NOT NULL DEFAULT '',
  auto_approved   INTEGER NOT NULL DEFAULT 0 CHECK (auto_approved IN (0, 1)),
  lost_count      INTEGER NOT NULL DEFAULT 0,
  not_before      TEXT NOT NULL DEFAULT '',
  times_sent_back         INTEGER NOT NULL DEFAULT 0,
  files           TEXT NOT NULL DEFAULT '[]', -- globs of files that it may touch
  agent           TEXT NOT NULL DEFAULT '', -- '' leaves it to the discipline and the configuration
  allow           TEXT NOT NULL DEFAULT '[]', -- changes that need no approval: "tests", or globs
  review          TEXT NOT NULL DEFAULT '', -- the agent that reviews it, "none", or '' as configured
  accepted        INTEGER NOT NULL DEFAULT 0, -- 1 if a recorded decision completed it
  hidden          TEXT NOT NULL DEFAULT '[]', -- checks that no session sees: titles and commands
  role            TEXT NOT NULL DEFAULT 'work' CHECK (role IN ('work','plan')), -- of its sessions
  marks           TEXT NOT NULL DEFAULT '[]' -- notes of the planning on it
) STRICT;
CREATE INDEX idx_tasks_feature ON tasks(feature_id, status);
CREATE INDEX idx_tasks_title ON tasks(normal_title);
CREATE INDEX idx_tasks_external ON tasks(external_id) WHERE external_id <> '';
CREATE INDEX idx_tasks_auto_approved ON tasks(created) WHERE origin = 'agent' AND auto_approved = 1;
-- Picking reads the first entry; the order is that of the queue.
CREATE INDEX idx_tasks_queue ON tasks(status, priority, rank, (CASE WHEN attempts > 0 THEN 0 ELSE 1 END), id);
CREATE INDEX idx_tasks_status ON tasks(status, id);
CREATE INDEX idx_tasks_latest ON tasks(updated, id);
CREATE INDEX idx_tasks_status_latest ON tasks(status, updated, id);
CREATE INDEX idx_tasks_completed ON tasks(status, completed_at, id);
CREATE INDEX idx_tasks_lost ON tasks(status, not_before, id) WHERE lost_count > 0;
-- Two columns come first, so that SQLite, which has no statistics here, does not choose idx_tasks_completed.
CREATE INDEX idx_tasks_unaccepted ON tasks(status, accepted, id) WHERE status = 'completed' AND accepted = 0;

CREATE TABLE task_dependencies (
  task_id    INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  depends_on INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  source     TEXT NOT NULL CHECK (source IN ('human','signal','import')),
  created    TEXT NOT NULL,
  PRIMARY KEY (task_id, depends_on),
  CHECK (task_id <> depends_on)
) STRICT;
CREATE INDEX idx_task_dependencies_upstream ON task_dependencies(depends_on, task_id);

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
  body            TEXT NOT NULL,
  parent_id       INTEGER REFERENCES task_comments(id) ON DELETE CASCADE,
  holding         INTEGER NOT NULL DEFAULT 0 CHECK (holding IN (0, 1)), -- an open question or blocker
  hold_reason     TEXT NOT NULL DEFAULT '',
  released_by     TEXT NOT NULL DEFAULT '' CHECK (released_by IN ('', 'retry', 'prompt')),
  resolved_at     TEXT NOT NULL DEFAULT '',
  resolved_by     TEXT NOT NULL DEFAULT '',
  decision        TEXT NOT NULL DEFAULT '',
  answered_at     TEXT NOT NULL DEFAULT '',
  answered_by     TEXT NOT NULL DEFAULT '',
  delivered_at    TEXT NOT NULL DEFAULT '', -- handed to a running session
  created         TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  review          TEXT NOT NULL DEFAULT '',
  delivered_to    TEXT NOT NULL DEFAULT '', -- the session that was handed it

  -- Parts of JSON texts, for queries.
  summary     TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.summary') END),
  question    TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.question') END),
  what        TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.what') END),
  severity    TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.severity') END),
  category    TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.category') END),
  signal_kind TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.kind') END),
  why         TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.why') END),
  waits_for   TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.on') END),
  detail      TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.detail') END),

  -- Every rule has the form (...) IS TRUE: a CHECK passes if it is NULL. What a payload holds is
  -- checked before it is stored (package signals).
  CONSTRAINT comment_or_signal CHECK (((signal_verb IS NULL) <> (kind IS NULL)) IS TRUE),
  CONSTRAINT payload_with_verb CHECK (((signal_verb IS NULL) = (signal_payload IS NULL)) IS TRUE),
  CONSTRAINT payload_is_object CHECK ((signal_payload IS NULL
    OR (json_valid(signal_payload) AND json_type(signal_payload) = 'object')) IS TRUE),
  CONSTRAINT only_asks_are_answered CHECK ((signal_answered IS NULL OR signal_verb = 'ask') IS TRUE),
  CONSTRAINT signal_has_session CHECK ((signal_verb IS NULL OR session_id IS NOT NULL) IS TRUE),
  CONSTRAINT rationale_given CHECK ((kind IS NULL OR kind NOT IN ('blocker','nack') OR trim(rationale) <> '') IS TRUE)
) STRICT;
CREATE INDEX idx_task_comments_task ON task_comments(task_id);
CREATE INDEX idx_task_comments_timeline ON task_comments(task_id, created, id, signal_verb);
CREATE INDEX idx_task_comments_session ON task_comments(session_id);
CREATE INDEX idx_task_comments_verb ON task_comments(signal_verb);
CREATE INDEX idx_task_comments_holding ON task_comments(task_id) WHERE holding = 1;
CREATE INDEX idx_task_comments_undelivered ON task_comments(task_id, id)
  WHERE delivered_at = '' AND signal_verb IS NULL AND author_kind = 'human';
CREATE INDEX idx_task_comments_flags ON task_comments(task_id, id) WHERE signal_verb = 'flag';
CREATE INDEX idx_task_comments_asks ON task_comments(task_id, id) WHERE signal_verb = 'ask';
-- Two columns come first, so that SQLite, which has no statistics here, does not choose idx_task_comments_verb.
CREATE INDEX idx_task_comments_suggest ON task_comments(signal_verb, resolved_at, id) WHERE signal_verb = 'suggest' AND resolved_at = '';
CREATE INDEX idx_task_comments_nack ON task_comments(id) WHERE kind = 'nack' AND resolved_at = '';
CREATE INDEX idx_task_comments_review ON task_comments(task_id, kind, id) WHERE review <> '';
-- For the limit of three open blockers of an author on a task.
CREATE INDEX task_comments_open_blockers_idx ON task_comments(task_id, author)
  WHERE kind = 'blocker' AND resolved_at = '';
CREATE INDEX idx_task_comments_held ON task_comments(id) WHERE holding = 1;
CREATE INDEX idx_task_comments_open_flags ON task_comments(signal_verb, resolved_at, id) WHERE signal_verb = 'flag' AND resolved_at = '';
CREATE INDEX idx_task_comments_open_questions ON task_comments(id) WHERE kind = 'question' AND resolved_at = '';
CREATE INDEX idx_task_comments_unanswered ON task_comments(signal_verb, signal_answered, id) WHERE signal_verb = 'ask' AND signal_answered IS NULL;

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
  applied_snapshot TEXT NOT NULL DEFAULT '', -- the task before the change, as JSON
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
  created    TEXT NOT NULL,
  pinned     INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
  terms      TEXT NOT NULL DEFAULT '',
  imported   TEXT NOT NULL DEFAULT '',
  claim      INTEGER NOT NULL DEFAULT 0 CHECK (claim IN (0, 1)) -- 1 if a person must confirm it
) STRICT;
CREATE INDEX idx_learnings_scope ON learnings(scope, feature_id, task_id) WHERE status = 'active';
CREATE INDEX idx_learnings_claims ON learnings(id) WHERE claim = 1 AND status = 'active';

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
  reason       TEXT NOT NULL DEFAULT '',
  idle         TEXT NOT NULL DEFAULT '', -- why no session begins
  sandbox      TEXT NOT NULL DEFAULT '', -- the sandbox of its agents, in words
  machine      TEXT NOT NULL DEFAULT '', -- the name of its machine
  process      TEXT NOT NULL DEFAULT '', -- its identity, by which its machine sees at once that it has ended
  lease_until  TEXT NOT NULL DEFAULT '' -- after this it counts as lost
) STRICT;
CREATE INDEX idx_runs_open ON runs(id) WHERE ended_at = '';

CREATE TABLE sessions (
  id                    TEXT PRIMARY KEY, -- a UUID, the agent's own session id
  task_id               INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  run_id                INTEGER REFERENCES runs(id) ON DELETE SET NULL,
  attempt               INTEGER NOT NULL,
  origin                TEXT NOT NULL DEFAULT 'loop' CHECK (origin IN ('loop','human')),
  discipline            TEXT NOT NULL DEFAULT '',
  current_state         TEXT NOT NULL DEFAULT 'idle' CHECK (current_state IN (
    'idle','analyzing','implementing','testing','committing','reviewing','done','failed')),
  state_history         TEXT NOT NULL DEFAULT '[]',
  ending                TEXT NOT NULL DEFAULT '',
  outcome               TEXT CHECK (outcome IN ('success','failure','timeout')),
  outcome_reason        TEXT NOT NULL DEFAULT '',
  closing_verb          TEXT CHECK (closing_verb IN ('done','partial','stuck')),
  model                 TEXT NOT NULL DEFAULT '',
  turns                 INTEGER NOT NULL DEFAULT 0,
  cost_usd              REAL NOT NULL DEFAULT 0,
  cost_known            INTEGER NOT NULL DEFAULT 0 CHECK (cost_known IN (0, 1)),
  cost_limit_usd        REAL NOT NULL DEFAULT 0,
  tokens                TEXT NOT NULL DEFAULT '{}',
  exit_status           INTEGER,
  last_words            TEXT NOT NULL DEFAULT '',
  stderr_tail           TEXT NOT NULL DEFAULT '',
  denials               TEXT NOT NULL DEFAULT '[]',
  leftovers             TEXT NOT NULL DEFAULT '[]',
  snapshot_before       TEXT NOT NULL DEFAULT '{}', -- state of the work tree at the start
  hashes_before         TEXT NOT NULL DEFAULT '{}',
  unchanged             TEXT NOT NULL DEFAULT '[]',
  files                 TEXT NOT NULL DEFAULT '[]',
  commits               TEXT NOT NULL DEFAULT '[]',
  verify                TEXT NOT NULL DEFAULT '[]',
  decision              TEXT NOT NULL DEFAULT '',
  stop_request          TEXT NOT NULL DEFAULT '' CHECK (stop_request IN ('','cancel','contract')),
  stop_by               TEXT NOT NULL DEFAULT '',
  people_edited         INTEGER NOT NULL DEFAULT 0 CHECK (people_edited IN (0, 1)), -- a person edited its task or feature meanwhile
  started_at            TEXT NOT NULL,
  updated_at            TEXT NOT NULL,
  completed_at          TEXT NOT NULL DEFAULT '', -- time of the decision; from then on its calls are refused
  facts                 TEXT NOT NULL DEFAULT '',
  halted_by             TEXT NOT NULL DEFAULT '',
  worker                TEXT NOT NULL DEFAULT '',
  dir                   TEXT NOT NULL DEFAULT '',
  branch                TEXT NOT NULL DEFAULT '',
  progress              TEXT NOT NULL DEFAULT '',
  undecided             TEXT NOT NULL DEFAULT '',
  notes                 TEXT NOT NULL DEFAULT '[]',
  strangers             INTEGER NOT NULL DEFAULT 0, -- refused attempts of other programs to act as the agent
  number                  INTEGER NOT NULL DEFAULT 0,
  checking              TEXT NOT NULL DEFAULT '', -- the command that checks its done
  checking_since        TEXT NOT NULL DEFAULT '',
  agent                 TEXT NOT NULL DEFAULT '',
  agent_version         TEXT NOT NULL DEFAULT '', -- as the agent reports it
  role                  TEXT NOT NULL DEFAULT 'work' CHECK (role IN ('work','review','plan','undo')),
  review                TEXT NOT NULL DEFAULT '', -- the result of a review
  machine               TEXT NOT NULL DEFAULT '', -- the machine of its work and transcript
  plan                  TEXT NOT NULL DEFAULT '', -- its plan so far

  -- The word for its ending.
  ended                 TEXT
    AS (CASE WHEN completed_at = '' THEN '' WHEN outcome = 'success' THEN 'finished' WHEN ending IN ('timed_out','interrupted') THEN 'stopped' WHEN ending <> 'finished' THEN 'lost' WHEN closing_verb = 'done' THEN 'refused' ELSE 'finished' END),
  -- Parts of JSON texts, for queries.
  accepted              INTEGER
    AS (CASE WHEN json_valid(decision) THEN coalesce(json_extract(decision, '$.Accepted'), 0) ELSE 0 END),
  task_reason           TEXT AS (CASE WHEN json_valid(decision) THEN json_extract(decision, '$.StatusReason') END),
  tokens_input          INTEGER AS (coalesce(json_extract(tokens, '$.input'), 0)),
  tokens_output         INTEGER AS (coalesce(json_extract(tokens, '$.output'), 0)),
  tokens_cache_read     INTEGER AS (coalesce(json_extract(tokens, '$.cache_read'), 0)),
  tokens_cache_creation INTEGER AS (coalesce(json_extract(tokens, '$.cache_creation'), 0))
) STRICT;
CREATE INDEX idx_sessions_task ON sessions(task_id, started_at, cost_usd);
CREATE INDEX idx_sessions_started ON sessions(started_at);
CREATE INDEX idx_sessions_open ON sessions(id) WHERE completed_at = '';
CREATE INDEX idx_sessions_run ON sessions(run_id, task_id, cost_known, completed_at,
  tokens_input, tokens_output, tokens_cache_read, tokens_cache_creation);
CREATE INDEX idx_sessions_completed ON sessions(completed_at, cost_usd, cost_known, agent, model, ended, task_id, accepted,
  tokens_input, tokens_output, tokens_cache_read, tokens_cache_creation, id);
CREATE INDEX idx_sessions_ended ON sessions(ended, completed_at, cost_usd,
  tokens_input, tokens_output, tokens_cache_read, tokens_cache_creation);
CREATE INDEX idx_sessions_workers ON sessions(id) WHERE completed_at = '' AND worker <> '';
CREATE INDEX idx_sessions_people ON sessions(started_at) WHERE origin = 'human';
-- One session at a time works on a task.
CREATE UNIQUE INDEX sessions_one_open ON sessions(task_id) WHERE completed_at = '' AND role IN ('work', 'plan');
CREATE INDEX idx_sessions_reviews ON sessions(task_id, started_at) WHERE role = 'review';

-- The state of a session, for the next one to continue from.
CREATE TABLE checkpoints (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id   TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  source       TEXT NOT NULL CHECK (source IN ('limit','end','reported')),
  iteration    INTEGER NOT NULL DEFAULT 0,
  state        TEXT NOT NULL,
  completed    TEXT NOT NULL DEFAULT '[]',
  remaining    TEXT NOT NULL DEFAULT '[]',
  note         TEXT NOT NULL DEFAULT '',
  tokens_used  INTEGER NOT NULL DEFAULT 0,
  tokens_limit INTEGER NOT NULL DEFAULT 0,
  created      TEXT NOT NULL
) STRICT;
CREATE INDEX idx_checkpoints_session ON checkpoints(session_id, id);

-- Permission questions of agents.
CREATE TABLE permission_requests (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id    INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  session_id TEXT NOT NULL,
  tool       TEXT NOT NULL,
  input      TEXT NOT NULL, -- its beginning, as JSON text
  decision   TEXT NOT NULL CHECK (decision IN ('allow','deny','ask')),
  rule       TEXT NOT NULL DEFAULT '', -- the rule that decided
  reason     TEXT NOT NULL DEFAULT '', -- the text for the agent
  decided_by TEXT NOT NULL DEFAULT '', -- a person's name; '' for the rules
  created    TEXT NOT NULL,
  decided_at TEXT NOT NULL DEFAULT '', -- '' while it waits for a person
  expires    TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX idx_permission_requests_session ON permission_requests(session_id, id);
CREATE INDEX idx_permission_requests_open ON permission_requests(id) WHERE decided_at = '';

-- The work of sessions in workspaces, on its way into the target branch.
CREATE TABLE changes (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id     INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  session_id  TEXT NOT NULL,
  base        TEXT NOT NULL, -- commits, and a tree
  head        TEXT NOT NULL,
  tree        TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN (
    'held','checking','queued','verifying','moving','reviewing','merged','sent_back','dropped')),
  place       INTEGER NOT NULL DEFAULT 0, -- in the line of checked and queued changes; a higher one is behind
  from_commit TEXT NOT NULL DEFAULT '', -- the target's commit when the merge began
  to_commit   TEXT NOT NULL DEFAULT '', -- the target's next commit
  own_commit  TEXT NOT NULL DEFAULT '', -- the merge of this change alone: to_commit, or one below it
  own_base    TEXT NOT NULL DEFAULT '', -- the commit below that merge; '' for the first parent of own_commit
  files       TEXT NOT NULL DEFAULT '[]', -- the difference between own_base and own_commit, JSON
  reason      TEXT NOT NULL DEFAULT '',
  conflicts   TEXT NOT NULL DEFAULT '[]', -- files, JSON
  undo        TEXT NOT NULL DEFAULT '' CHECK (undo IN ('', 'cancelled', 'completed')), -- for an undo: the task's status after the merge
  merged_run  INTEGER NOT NULL DEFAULT 0, -- the run in which it was merged; 0 for none
  merged_at   TEXT NOT NULL DEFAULT '', -- '' before the merge
  created     TEXT NOT NULL,
  updated     TEXT NOT NULL,
  proof       TEXT NOT NULL DEFAULT '', -- of its own tests, JSON; '' before it was tried
  after_begun INTEGER NOT NULL DEFAULT 0, -- merge.after has begun, and does not run again
  branch      TEXT NOT NULL DEFAULT '' -- pushed for a pull request; '' for none
) STRICT;
CREATE UNIQUE INDEX changes_one_open ON changes(task_id) WHERE state NOT IN ('checking','merged','sent_back','dropped');
CREATE INDEX idx_changes_place ON changes(place);
CREATE INDEX idx_changes_task ON changes(task_id, id);
CREATE INDEX idx_changes_state ON changes(state, id);
CREATE INDEX idx_changes_session ON changes(session_id, state);
CREATE INDEX idx_changes_merged_run ON changes(merged_run, session_id);
CREATE INDEX idx_changes_merged_at ON changes(merged_at, session_id) WHERE merged_at <> '';

-- The state of merging: why it is paused, and the next try of the remote. One row.
CREATE TABLE merge_queue (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  target     TEXT NOT NULL DEFAULT '', -- the branch that changes are merged into
  paused     TEXT NOT NULL DEFAULT '',
  wait_until TEXT NOT NULL DEFAULT '',
  waits      TEXT NOT NULL DEFAULT '', -- the machine that waits for the remote
  failures   INTEGER NOT NULL DEFAULT 0,
  behind     TEXT NOT NULL DEFAULT '', -- why the person's branch could not follow; '' if it did
  ahead      INTEGER NOT NULL DEFAULT 0, -- commits that the person's branch lacks
  command    TEXT NOT NULL DEFAULT '', -- to update that branch
  pulls      INTEGER NOT NULL DEFAULT 0 -- 1 if its changes become pull requests
) STRICT;
INSERT INTO merge_queue (id) VALUES (1);

-- Problems that a person must fix.
CREATE TABLE troubles (
  kind    TEXT PRIMARY KEY, -- run, notifications or merge.after
  what    TEXT NOT NULL,
  command TEXT NOT NULL, -- to fix it; '' if none does
  created TEXT NOT NULL
) STRICT;

-- Leases for work that one process of all machines does at a time.
CREATE TABLE leases (
  name    TEXT PRIMARY KEY,
  machine TEXT NOT NULL,
  process TEXT NOT NULL, -- as in runs
  until   TEXT NOT NULL
) STRICT;

-- The machines on which runs work or have worked.
CREATE TABLE machines (
  name       TEXT PRIMARY KEY,
  drained_at TEXT NOT NULL DEFAULT '', -- '' if runs may begin there
  drained_by TEXT NOT NULL DEFAULT ''
) STRICT;

-- Results of the verification before a task's first session.
CREATE TABLE baselines (
  task_id INTEGER PRIMARY KEY REFERENCES tasks(id) ON DELETE CASCADE,
  results TEXT NOT NULL,
  created TEXT NOT NULL
) STRICT;

-- Results of a command for a state of the work tree.
CREATE TABLE verifications (
  content TEXT NOT NULL, -- digest of the work tree
  command TEXT NOT NULL,
  result  TEXT NOT NULL,
  created TEXT NOT NULL,
  PRIMARY KEY (content, command)
) STRICT;
CREATE INDEX idx_verifications_created ON verifications(created);

-- The state of each agent, across runs.
CREATE TABLE agent_states (
  agent      TEXT PRIMARY KEY, -- its name below agents
  wait_until TEXT NOT NULL DEFAULT '', -- no session of it before this time
  reason     TEXT NOT NULL DEFAULT '',
  ending     TEXT NOT NULL DEFAULT '', -- the agent error of its last session
  failures   INTEGER NOT NULL DEFAULT 0 -- errors in a row, for the back-off
) STRICT;

-- The account of each agent. The state of an agent is that of this account.
CREATE TABLE agent_accounts (
  agent   TEXT PRIMARY KEY, -- its name below agents
  account TEXT NOT NULL -- a digest of its identity
) STRICT;

-- A subscription's windows, as last reported.
CREATE TABLE usage_windows (
  agent       TEXT NOT NULL,
  name        TEXT NOT NULL, -- "five_hour", "seven_day", …
  utilization REAL NOT NULL, -- 0 to 1
  resets_at   TEXT NOT NULL DEFAULT '',
  seen        TEXT NOT NULL,
  PRIMARY KEY (agent, name)
) STRICT;

CREATE TABLE events (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  type          TEXT NOT NULL,
  task_id       INTEGER,
  session_id    TEXT NOT NULL DEFAULT '',
  run_id        INTEGER,
  payload       TEXT NOT NULL DEFAULT '{}',
  created       TEXT NOT NULL,

  -- Parts of JSON texts, for queries.
  status_from   TEXT AS (CASE WHEN type = 'task.status_changed' THEN json_extract(payload, '$.from') END),
  status_to     TEXT AS (CASE WHEN type = 'task.status_changed' THEN json_extract(payload, '$.to') END),
  status_reason TEXT AS (CASE WHEN type = 'task.status_changed' THEN json_extract(payload, '$.reason') END)
) STRICT;
CREATE INDEX idx_events_task ON events(task_id, id);

-- The positions of readers of the events.
CREATE TABLE event_readers (
  reader   TEXT PRIMARY KEY,
  position INTEGER NOT NULL, -- the last event that the reader has handled
  updated  TEXT NOT NULL
) STRICT;

-- The forge whose issues are followed. One row, after the first look.
CREATE TABLE forge (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  repository TEXT NOT NULL DEFAULT '',
  queue      TEXT NOT NULL DEFAULT '', -- names this queue in the marks of its posts
  since      TEXT NOT NULL DEFAULT '', -- changes of issues up to this time were read
  woken      TEXT NOT NULL DEFAULT '' -- when the last webhook arrived
) STRICT;

-- Issues that became tasks.
CREATE TABLE forge_issues (
  id      INTEGER PRIMARY KEY, -- the issue's number
  task_id INTEGER NOT NULL UNIQUE REFERENCES tasks(id) ON DELETE CASCADE,
  url     TEXT NOT NULL,
  wanted  INTEGER NOT NULL, -- at the last look it was open and had the label
  digest  TEXT NOT NULL, -- of its text at the last look
  read_to TEXT NOT NULL DEFAULT '', -- comments up to this time were read
  status  TEXT NOT NULL DEFAULT '', -- the id of the status comment; '' before it
  posted  TEXT NOT NULL DEFAULT '' -- the digest of that comment and of the label
) STRICT;

-- Handled comments and reviews, with the replies to them.
CREATE TABLE forge_comments (
  id       TEXT PRIMARY KEY,
  number   INTEGER NOT NULL, -- of the issue or pull request
  reaction TEXT NOT NULL, -- '' for none
  reply    TEXT NOT NULL, -- '' for none
  sent     INTEGER NOT NULL, -- both were sent, or given up
  author   TEXT NOT NULL DEFAULT '', -- if the author may decide nothing
  body     TEXT NOT NULL DEFAULT '', -- of such a comment: shown on the task's page, and never in a prompt
  created  TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX idx_forge_comments_unsent ON forge_comments(sent) WHERE sent = 0;

-- Pull requests.
CREATE TABLE forge_pulls (
  id        INTEGER PRIMARY KEY, -- its number
  task_id   INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  change_id INTEGER NOT NULL, -- the last change that was pushed to its branch
  branch    TEXT NOT NULL,
  url       TEXT NOT NULL,
  rounds    INTEGER NOT NULL DEFAULT 0, -- sessions caused by reviews and checks
  open      INTEGER NOT NULL DEFAULT 1,
  settled   TEXT NOT NULL DEFAULT '' -- the time of its last change when it was read; '' to read it again
) STRICT;
CREATE INDEX idx_forge_pulls_task ON forge_pulls(task_id);

-- The project of the queue.
CREATE TABLE project (
  id            INTEGER PRIMARY KEY CHECK (id = 1),
  root          TEXT NOT NULL, -- its folder, relative to the top of its work tree: "." or "web"; '' if unknown
  first_commits TEXT NOT NULL DEFAULT '' -- commits of its repository without a parent, on a server
) STRICT;

-- The number of transactions. A file beside the database has the same, so that a loss is noticed.
CREATE TABLE progress (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  database TEXT NOT NULL, -- its identity; copies share it
  commits  INTEGER NOT NULL DEFAULT 0 -- transactions that changed something
) STRICT;
