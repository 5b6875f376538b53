-- Who works on the queue, and until when: several machines may.
ALTER TABLE runs ADD COLUMN machine TEXT NOT NULL DEFAULT '';     -- its name
ALTER TABLE runs ADD COLUMN process TEXT NOT NULL DEFAULT '';     -- machine.Join; only machine.Look reads it
ALTER TABLE runs ADD COLUMN lease_until TEXT NOT NULL DEFAULT ''; -- it is taken for lost after that
ALTER TABLE sessions ADD COLUMN machine TEXT NOT NULL DEFAULT ''; -- where it works, and where its transcript is
-- What one process at a time does.
CREATE TABLE leases (
  name    TEXT PRIMARY KEY,
  machine TEXT NOT NULL,
  process TEXT NOT NULL,
  until   TEXT NOT NULL
) STRICT;
