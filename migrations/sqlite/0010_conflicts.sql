-- Learnings that contradict each other, until a person settles it.
CREATE TABLE learning_conflicts (
  learning_id INTEGER NOT NULL REFERENCES learnings(id) ON DELETE CASCADE, -- the later one
  other_id    INTEGER NOT NULL REFERENCES learnings(id) ON DELETE CASCADE,
  settled_at  TEXT NOT NULL DEFAULT '',
  settled_by  TEXT NOT NULL DEFAULT '',
  created     TEXT NOT NULL,
  PRIMARY KEY (learning_id, other_id)
) STRICT;
CREATE INDEX idx_learning_conflicts_open ON learning_conflicts(other_id) WHERE settled_at = '';

-- The stems of a learning's words, for ranking; '' until it is next written.
ALTER TABLE learnings ADD COLUMN terms TEXT NOT NULL DEFAULT '';
