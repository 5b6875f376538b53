-- Picking reads the first entry of an index. The one that had the pending tasks alone
-- was not used for it: SQLite took the one on the status and sorted all of them.
DROP INDEX idx_tasks_queue;
CREATE INDEX idx_tasks_queue ON tasks(status, priority, rank, (CASE WHEN attempts > 0 THEN 0 ELSE 1 END), id);
-- What holds tasks back is looked for among all comments whenever a run has nothing
-- to do; with the index by task every comment there is was read, in their order.
CREATE INDEX idx_task_comments_held ON task_comments(id) WHERE holding = 1;
