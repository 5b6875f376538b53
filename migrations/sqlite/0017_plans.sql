-- Picking reads the first entry of an index. The index of only pending tasks was not used for
-- it: SQLite used the one on the status and sorted all of its tasks.
DROP INDEX idx_tasks_queue;
CREATE INDEX idx_tasks_queue ON tasks(status, priority, rank, (CASE WHEN attempts > 0 THEN 0 ELSE 1 END), id);
-- An idle run searches all comments for those that hold tasks; with the index by task, it read
-- every comment, in their order.
CREATE INDEX idx_task_comments_held ON task_comments(id) WHERE holding = 1;
