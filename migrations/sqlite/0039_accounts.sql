-- What is known of an agent is known of the account with which it worked then.
CREATE TABLE agent_accounts (
  agent   TEXT PRIMARY KEY,  -- its name below agents
  account TEXT NOT NULL      -- a digest that tells it from others
) STRICT;
