-- A session's version of files that steer agents is set aside while later sessions work: they get
-- the version that people approved.

ALTER TABLE configuration_files ADD COLUMN aside INTEGER NOT NULL DEFAULT 0; -- 1: the approved version is in its place
