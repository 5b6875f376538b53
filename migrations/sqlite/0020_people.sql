-- What people should know of a session: attempts at commands for people only, changes of people's
-- files, and what was restored. A JSON list of sentences.
ALTER TABLE sessions ADD COLUMN notes TEXT NOT NULL DEFAULT '[]';

-- The files that configure runs, as people left or approved them and as the last session
-- left them. Digests are of content; '' means that there is no such file.
CREATE TABLE configuration_files (
  path       TEXT PRIMARY KEY,           -- absolute
  approved   TEXT NOT NULL,
  seen       TEXT NOT NULL,
  session_id TEXT NOT NULL DEFAULT ''    -- which left it so; '' for people
) STRICT;
