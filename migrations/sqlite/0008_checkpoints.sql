-- The progress of sessions, for those that continue their work.
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
