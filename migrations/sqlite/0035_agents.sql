-- Which coding agent works, by the name it has in ralph.yaml; '' leaves it to the
-- discipline and the configuration, and of sessions stands for what worked before there were names.
ALTER TABLE tasks ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE disciplines ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN agent_version TEXT NOT NULL DEFAULT ''; -- as its program tells
