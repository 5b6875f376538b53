-- The files that landings changed, as the last one of each left it: what a session has put into people's
-- files is found by name, however much has landed.
CREATE TABLE landed_files (
  path       TEXT PRIMARY KEY,           -- relative to the project
  commit_id  TEXT NOT NULL,              -- of the landing
  session_id TEXT NOT NULL,
  steers     INTEGER NOT NULL CHECK (steers IN (0, 1)) -- its name is one of those by which agents are steered
) STRICT;
CREATE INDEX idx_landed_files_steers ON landed_files(path) WHERE steers = 1;
