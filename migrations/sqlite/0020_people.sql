-- What people have to know of a session: what it tried that only people may do, what
-- it changed of what is theirs, and what was put back. A JSON list of sentences.
ALTER TABLE sessions ADD COLUMN notes TEXT NOT NULL DEFAULT '[]';

-- The files by which runs are configured, as people left or approved them and as the
-- last session left them. Digests are of content; '' means that there is no such file.
CREATE TABLE configuration_files (
  path       TEXT PRIMARY KEY,           -- absolute
  approved   TEXT NOT NULL,
  seen       TEXT NOT NULL,
  session_id TEXT NOT NULL DEFAULT ''    -- which left it so; '' for people
) STRICT;
