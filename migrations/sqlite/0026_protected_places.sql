-- Protected files are recorded for each place where sessions work: a session's version in one
-- work tree is not people's version in another.

CREATE TABLE protected (
  place    TEXT NOT NULL,                -- the folder
  path     TEXT NOT NULL,                -- relative to it
  approved TEXT NOT NULL,                -- digest of the content; '' if there is no such file
  seen     TEXT NOT NULL,
  PRIMARY KEY (place, path)
) STRICT;

-- Older rows are about the loop's own work tree.
INSERT INTO protected (place, path, approved, seen)
SELECT coalesce((
  SELECT s.dir FROM sessions s
  WHERE s.origin = 'loop' AND s.worker = '' AND s.dir <> ''
  ORDER BY s.started_at DESC LIMIT 1
), ''), p.path, p.approved, p.seen
FROM protected_files p;

DROP TABLE protected_files;
ALTER TABLE protected RENAME TO protected_files;
