package store

// A LandedFile is a file as the last landing that changed it left it.
type LandedFile struct {
	Path    string // relative to the project
	Commit  string // of the landing
	Session string
	Steers  bool // its name is one of those by which agents are steered
}

// NoteLanded records files that a landing changed.
func (tx *Tx) NoteLanded(files []LandedFile) error {
	for _, f := range files {
		if err := tx.put("landed_files", "path", cells{
			"path": f.Path, "commit_id": f.Commit, "session_id": f.Session, "steers": f.Steers,
		}); err != nil {
			return err
		}
	}
	return nil
}

// LandedFiles lists the landed files that steer agents, and those of the given names.
func (tx *Tx) LandedFiles(names []string) ([]LandedFile, error) {
	const from = `SELECT path, commit_id, session_id, steers FROM landed_files WHERE `
	scan := func(row scanner) (f LandedFile, err error) {
		return f, row.Scan(&f.Path, &f.Commit, &f.Session, &f.Steers)
	}
	files, err := all(tx, scan, from+`steers = 1`)
	for _, name := range names {
		if err != nil {
			break
		}
		var named []LandedFile
		named, err = all(tx, scan, from+`path = $1 AND steers = 0`, name)
		files = append(files, named...)
	}
	return files, err
}
