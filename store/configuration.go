package store

import (
	"ralph"
)

// A ConfigurationFile is a file that configures runs. Digests are of its content; "" means that
// there is no such file.
type ConfigurationFile struct {
	Path     string // absolute
	Approved string // as people left or approved it
	Seen     string // as the last session left it
	Session  string // the session that left it so; "" for people
	Aside    bool   // the approved version replaces it while sessions work
}

// ConfigurationFiles returns all known configuration files by path.
func (tx *Tx) ConfigurationFiles() (map[string]ConfigurationFile, error) {
	list, err := all(tx, func(row scanner) (c ConfigurationFile, err error) {
		return c, row.Scan(&c.Path, &c.Approved, &c.Seen, &c.Session, &c.Aside)
	}, `SELECT path, approved, seen, session_id, aside FROM configuration_files`)
	files := make(map[string]ConfigurationFile, len(list))
	for _, c := range list {
		files[c.Path] = c
	}
	return files, err
}

// PutConfigurationFiles stores the given configuration files.
func (tx *Tx) PutConfigurationFiles(files []ConfigurationFile) error {
	for _, c := range files {
		if err := tx.put("configuration_files", "path", cells{
			"path": c.Path, "approved": c.Approved, "seen": c.Seen, "session_id": c.Session, "aside": c.Aside,
		}); err != nil {
			return err
		}
	}
	return nil
}

// ApproveConfiguration stores configuration files as approved, on behalf of a person.
func (tx *Tx) ApproveConfiguration(files []ConfigurationFile, by string) error {
	names := make([]string, len(files))
	for i, c := range files {
		names[i] = c.Path
	}
	if err := tx.PutConfigurationFiles(files); err != nil {
		return err
	}
	return tx.record(ralph.Event{}, ralph.ConfigurationApproved{Files: names, By: by})
}

// AgentsWork reports whether an agent's session has not been settled yet: changes made meanwhile
// may be its own.
func (tx *Tx) AgentsWork() (bool, error) {
	return value[bool](tx, `SELECT EXISTS (SELECT 1 FROM sessions WHERE completed_at = '' AND origin = 'loop')`)
}
