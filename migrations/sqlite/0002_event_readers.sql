-- How far those who read the log of events have come, such as the receivers of
-- notifications: each resumes there, whatever happened to its process.
CREATE TABLE event_readers (
  reader   TEXT PRIMARY KEY,
  position INTEGER NOT NULL, -- the last event that it has dealt with
  updated  TEXT NOT NULL
) STRICT;
