-- This column was meant for a variable of the client; no version ever used it.
ALTER TABLE task_comments DROP COLUMN agent_task_id;
