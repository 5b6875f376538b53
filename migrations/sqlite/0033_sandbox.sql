-- What confined the agents of a run, in words; '' if unknown.
ALTER TABLE runs ADD COLUMN sandbox TEXT NOT NULL DEFAULT '';
