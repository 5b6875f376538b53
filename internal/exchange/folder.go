package exchange

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// TasksFile is the checklist in a folder that is about one change: of OpenSpec, Kiro or Spec Kit.
const TasksFile = "tasks.md"

// A Plan is a file of a folder that may hold tasks, with the context files about it.
type Plan struct {
	File    string
	Context []string
}

// Plans lists the plans of a folder by name: the files [TasksFile] in it or below, each with the other files *.md of
// its folder as context; the files *.md in it if there is none. Archived changes and hidden folders are left out.
func Plans(folder fs.FS) (plans []Plan, err error) {
	var files, here []string
	err = fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (base == "archive" || base == "node_modules" || strings.HasPrefix(base, ".")):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		files = append(files, name)
		if !strings.Contains(name, "/") {
			here = append(here, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if path.Base(name) == TasksFile {
			plans = append(plans, Plan{File: name})
		}
	}
	if len(plans) == 0 {
		for _, name := range here {
			plans = append(plans, Plan{File: name})
		}
		return plans, nil
	}
	for _, name := range files {
		for i := range plans {
			p := &plans[i]
			if dir := path.Dir(p.File); name != p.File && (dir == "." && len(plans) == 1 || strings.HasPrefix(name, dir+"/")) {
				p.Context = append(p.Context, name)
			}
		}
	}
	for i := range plans {
		slices.SortStableFunc(plans[i].Context, func(a, b string) int { return rank(a) - rank(b) })
	}
	return plans, nil
}

// rank orders the files about a change: reasons first, then requirements, then design.
func rank(name string) int {
	order := []string{"proposal.md", "requirements.md", "spec.md", "design.md", "plan.md"}
	if i := slices.Index(order, path.Base(name)); i >= 0 {
		return i
	}
	return len(order)
}
