-- The positions of the readers of the event log, such as the receivers of notifications:
-- each resumes there, whatever happened to its process.
CREATE TABLE event_readers (
  reader   TEXT PRIMARY KEY,
  position INTEGER NOT NULL, -- the last event that it has handled
  updated  TEXT NOT NULL
) STRICT;
