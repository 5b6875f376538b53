package store

import "strings"

// Root returns the project's root relative to the top of its work tree; "" if it is not known yet.
func (tx *Tx) Root() (root string, err error) {
	return value[string](tx, `SELECT coalesce(max(root), '') FROM project`)
}

// SetRoot records the project's root.
func (tx *Tx) SetRoot(root string) error {
	return tx.put("project", "id", cells{"id": 1, "root": root})
}

// FirstCommits returns the commits without a parent of the repository that the queue belongs to; none if they are not
// known.
func (tx *Tx) FirstCommits() ([]string, error) {
	text, err := value[string](tx, `SELECT coalesce(max(first_commits), '') FROM project`)
	return strings.Fields(text), err
}

// SetFirstCommits sets the commits that [Tx.FirstCommits] returns.
func (tx *Tx) SetFirstCommits(ids []string) error {
	return tx.do(`INSERT INTO project (id, root, first_commits) VALUES (1, '', $1)
		ON CONFLICT (id) DO UPDATE SET first_commits = excluded.first_commits`, strings.Join(ids, " "))
}
