-- Learnings that people have pinned: they come before all others.
ALTER TABLE learnings ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1));
