-- How far the database has got: a file beside it says the same, so that a loss is noticed.
CREATE TABLE progress (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  database TEXT NOT NULL,             -- tells it from others; copies share it
  commits  INTEGER NOT NULL DEFAULT 0 -- transactions that have changed anything
) STRICT;
