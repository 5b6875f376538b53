-- The command that is checking a session's done, once it has taken a second, and its start.
ALTER TABLE sessions ADD COLUMN checking TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN checking_since TEXT NOT NULL DEFAULT '';

-- The session that was handed a person's comment; session_id is for a session's own comments.
ALTER TABLE task_comments ADD COLUMN delivered_to TEXT NOT NULL DEFAULT '';
UPDATE task_comments SET delivered_to = session_id, session_id = NULL
  WHERE delivered_at <> '' AND author_kind = 'human' AND session_id IS NOT NULL;
