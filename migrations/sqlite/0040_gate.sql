-- What a task may change without anybody being asked, a JSON list: "tests", or globs of files.
ALTER TABLE tasks ADD COLUMN allow TEXT NOT NULL DEFAULT '[]';

-- What the change's own tests prove, as JSON; '' as long as that was not looked at.
ALTER TABLE changes ADD COLUMN proof TEXT NOT NULL DEFAULT '';

-- What speaks of checks, permissions or signals waits for a person, who confirms it or has it forgotten.
ALTER TABLE learnings ADD COLUMN claim INTEGER NOT NULL DEFAULT 0 CHECK (claim IN (0, 1));
CREATE INDEX idx_learnings_claims ON learnings(id) WHERE claim = 1 AND status = 'active';
