-- Several agents may work: the state of each is stored under its name in the configuration.
CREATE TABLE agent_states (
  agent      TEXT PRIMARY KEY,           -- its name below agents
  wait_until TEXT NOT NULL DEFAULT '',   -- no session of it before this time
  reason     TEXT NOT NULL DEFAULT '',
  ending     TEXT NOT NULL DEFAULT '',   -- of its last session, an agent error
  failures   INTEGER NOT NULL DEFAULT 0  -- errors in a row, for the back-off
) STRICT;
INSERT INTO agent_states (agent, wait_until, reason, failures)
  SELECT 'claude', wait_until, reason, failures FROM agent_state WHERE failures > 0;
DROP TABLE agent_state;

CREATE TABLE windows_of_agents (
  agent       TEXT NOT NULL,
  name        TEXT NOT NULL,             -- "five_hour", "seven_day", …
  utilization REAL NOT NULL,             -- 0 to 1
  resets_at   TEXT NOT NULL DEFAULT '',
  seen        TEXT NOT NULL,
  PRIMARY KEY (agent, name)
) STRICT;
INSERT INTO windows_of_agents (agent, name, utilization, resets_at, seen)
  SELECT 'claude', name, utilization, resets_at, seen FROM usage_windows;
DROP TABLE usage_windows;
ALTER TABLE windows_of_agents RENAME TO usage_windows;
