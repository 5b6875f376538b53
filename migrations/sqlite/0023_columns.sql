-- The parts of JSON texts that ralph's queries use are generated columns. The database computes
-- them for all rows, whoever writes them.

-- Fields of signals; null for other verbs, and for comments.
ALTER TABLE task_comments ADD COLUMN summary TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.summary') END);
ALTER TABLE task_comments ADD COLUMN question TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.question') END);
ALTER TABLE task_comments ADD COLUMN what TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.what') END);
ALTER TABLE task_comments ADD COLUMN severity TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.severity') END);
ALTER TABLE task_comments ADD COLUMN category TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.category') END);
ALTER TABLE task_comments ADD COLUMN signal_kind TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.kind') END);
ALTER TABLE task_comments ADD COLUMN why TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.why') END);
ALTER TABLE task_comments ADD COLUMN waits_for TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.on') END);
ALTER TABLE task_comments ADD COLUMN detail TEXT AS (CASE WHEN json_valid(signal_payload) THEN json_extract(signal_payload, '$.detail') END);

-- How a task's status changed; null for other events.
ALTER TABLE events ADD COLUMN status_from TEXT
  AS (CASE WHEN type = 'task.status_changed' THEN json_extract(payload, '$.from') END);
ALTER TABLE events ADD COLUMN status_to TEXT
  AS (CASE WHEN type = 'task.status_changed' THEN json_extract(payload, '$.to') END);
ALTER TABLE events ADD COLUMN status_reason TEXT
  AS (CASE WHEN type = 'task.status_changed' THEN json_extract(payload, '$.reason') END);

-- The decision on a session, and what it used.
ALTER TABLE sessions ADD COLUMN accepted INTEGER
  AS (CASE WHEN json_valid(decision) THEN coalesce(json_extract(decision, '$.Accepted'), 0) ELSE 0 END);
ALTER TABLE sessions ADD COLUMN task_reason TEXT
  AS (CASE WHEN json_valid(decision) THEN json_extract(decision, '$.StatusReason') END);
ALTER TABLE sessions ADD COLUMN tokens_input INTEGER AS (coalesce(json_extract(tokens, '$.input'), 0));
ALTER TABLE sessions ADD COLUMN tokens_output INTEGER AS (coalesce(json_extract(tokens, '$.output'), 0));
ALTER TABLE sessions ADD COLUMN tokens_cache_read INTEGER AS (coalesce(json_extract(tokens, '$.cache_read'), 0));
ALTER TABLE sessions ADD COLUMN tokens_cache_creation INTEGER AS (coalesce(json_extract(tokens, '$.cache_creation'), 0));
