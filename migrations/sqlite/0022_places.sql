-- The folder that a queue belongs to, and the states that were left in it.

-- The project's root, relative to the top of its work tree: "." or "web".
CREATE TABLE project (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  root TEXT NOT NULL
) STRICT;

-- States of the work tree that a session, or a command that ralph ran, has produced. People left
-- any state without a row.
CREATE TABLE left_states (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  content         TEXT NOT NULL,           -- digest of the work tree
  committed       TEXT NOT NULL,           -- digest of what of it was committed
  found_content   TEXT NOT NULL,           -- what it was made of
  found_committed TEXT NOT NULL,
  session_id      TEXT NOT NULL DEFAULT '',-- '' for a command
  accepted        INTEGER NOT NULL,        -- 1 if the session's done was accepted
  created         TEXT NOT NULL
) STRICT;
CREATE INDEX idx_left_states_content ON left_states(content, id);
