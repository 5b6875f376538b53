package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/exchange"
	"ralph/internal/inbox"
	"ralph/internal/proc"
	"ralph/internal/term"
	"ralph/store"
)

func newPlanEdit(a *app) *cobra.Command {
	var file, state string
	cmd := newCommand("edit [FEATURE]", func(cmd *cobra.Command, args []string) error {
		if (file == "") != (state == "") {
			return usage(errors.New("--file and --state belong together: `ralph plan show` prints the state of the plan " +
				"that you edited"))
		}
		shown, err := read(cmd.Context(), a, func(tx *store.Tx) (inbox.Plan, error) {
			return inbox.ReadPlan(tx, append(args, "")[0])
		})
		if err != nil {
			return err
		}
		edited, kept := "", file
		if file != "" {
			_, b, err := a.readInput(file)
			if err != nil {
				return err
			}
			edited = string(b)
		} else {
			state = shown.State
			if edited, kept, err = a.editText(cmd, shown.Markdown()); err != nil {
				return err
			}
		}
		said, err := alter(cmd.Context(), a, func(tx *store.Tx) ([]string, error) {
			now, err := inbox.ReadPlan(tx, shown.Feature.Name)
			if err != nil {
				return nil, err
			}
			if now.State != state {
				return nil, ralph.Conflict("the plan of %s was changed meanwhile, and nothing of yours is taken: "+
					"`ralph plan show` shows its present form and state", shown.Feature.Name)
			}
			return editPlan(tx, now, now.Markdown(), edited, a.person())
		})
		if err != nil {
			return usage(fmt.Errorf("%w; your text is in %s: mend it, and give it with --file and --state",
				inFile(kept, err), kept))
		}
		if file == "" {
			if err := os.RemoveAll(filepath.Dir(kept)); err != nil {
				return err
			}
		}
		if len(said) == 0 {
			said = []string{"nothing is changed"}
		}
		return a.say(said, "%s", strings.Join(said, "\n"))
	})
	cmd.Flags().StringVar(&file, "file", "", "take the edited plan from this `FILE`, or - for standard input")
	cmd.Flags().StringVar(&state, "state", "", "the `STATE` of the plan that was edited, which `ralph plan show` says")
	cmd.PostRunE = a.endClaims
	return cmd
}

// editText opens a text in a person's editor. The text stays in a file.
func (a *app) editText(cmd *cobra.Command, form string) (edited, path string, err error) {
	if !term.Is(a.out) {
		return "", "", usage(errors.New("there is no terminal for an editor; give the plan with --file FILE"))
	}
	dir, err := os.MkdirTemp("", "ralph-plan-*")
	if err != nil {
		return "", "", err
	}
	path = filepath.Join(dir, "plan.md")
	if err := os.WriteFile(path, []byte(form), 0o600); err != nil {
		return "", "", err
	}
	editor := cmp.Or(strings.TrimSpace(a.getenv("VISUAL")), strings.TrimSpace(a.getenv("EDITOR")), "vi")
	if err := proc.Foreground(cmd.Context(), append(strings.Fields(editor), path), a.environ, nil); err != nil {
		return "", "", fmt.Errorf("editor %s (set VISUAL or EDITOR): %w; the text is in %s", editor, err, path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("the edited plan cannot be read back, and nothing is changed: %w; the text is in %s",
			err, path)
	}
	return string(b), path, nil
}

// editPlan applies the differences between two texts of a plan to its tasks, and describes each
// edit in a line.
func editPlan(tx *store.Tx, p inbox.Plan, form, edited, person string) (said []string, err error) {
	before, err := exchange.Parse([]byte(form), exchange.Checklist)
	if err != nil {
		return nil, err
	}
	after, err := exchange.Parse([]byte(edited), exchange.Checklist)
	if err != nil {
		return nil, err
	}
	was := map[string]ralph.ImportedTask{}
	for _, t := range before.Tasks {
		was[t.ExternalID] = t
	}
	there := map[string]bool{}
	for _, n := range after.Tasks {
		old, ok := was[n.ExternalID]
		if !ok {
			return nil, &store.ImportError{Line: n.Line, Err: fmt.Errorf(
				"%q is not a task of the plan of %s: `ralph task add TITLE --feature NAME` adds one", n.Title, p.Feature.Name)}
		}
		there[n.ExternalID] = true
		id, err := ralph.ParseTaskID(n.ExternalID)
		if err != nil {
			return nil, err
		}
		changed, err := editTask(tx, id, old, n, person)
		if err != nil {
			return nil, &store.ImportError{Line: n.Line, Err: err}
		}
		if len(changed) > 0 {
			said = append(said, fmt.Sprintf("TASK-%d changed: %s", id, strings.Join(changed, ", ")))
		}
	}
	for _, t := range p.Tasks {
		if name := fmt.Sprintf("TASK-%d", t.ID); was[name].Title != "" && !there[name] {
			if err := tx.RejectProposal(t.ID, "taken out of the plan", person); err != nil {
				return nil, err
			}
			said = append(said, name+" rejected")
		}
	}
	return said, nil
}

// editTask applies the differences of two texts of a task, and names them.
func editTask(tx *store.Tx, id int64, old, n ralph.ImportedTask, person string) (changed []string, err error) {
	was, err := tx.Task(id)
	if err != nil {
		return nil, err
	}
	t := was
	if n.Title != old.Title {
		t.Title = n.Title
	}
	if n.Description != old.Description {
		t.Description = n.Description
	}
	for _, f := range []struct{ to, old, now *[]string }{
		{&t.Acceptance, &old.Acceptance, &n.Acceptance},
		{&t.Verify, &old.Verify, &n.Verify},
		{&t.Files, &old.Files, &n.Files},
		{&t.Allow, &old.Allow, &n.Allow},
	} {
		if !slices.Equal(*f.old, *f.now) {
			*f.to = *f.now
		}
	}
	for name := range ralph.Changes(was, t) {
		changed = append(changed, name)
	}
	slices.Sort(changed)
	if len(changed) > 0 {
		if was.Status.Ended() {
			return nil, ralph.Conflict("TASK-%d %s, and stays", id, was.Is())
		}
		if err := tx.UpdateTask(t); err != nil {
			return nil, err
		}
		if _, err := tx.StopForContract(was, t, false, person); err != nil {
			return nil, err
		}
	}
	needs := func(of ralph.ImportedTask) (list []string) {
		for _, need := range of.Needs {
			_, name := ralph.ExternalID(need.Key)
			list = append(list, name)
		}
		return list
	}
	on, now := needs(old), needs(n)
	for _, name := range append(slices.Clone(on), now...) {
		drop, add := !slices.Contains(now, name), !slices.Contains(on, name)
		if !drop && !add {
			continue
		}
		other, err := ralph.ParseTaskID(name)
		if err == nil && drop {
			err = tx.DropDependency(id, other)
		} else if err == nil {
			err = tx.AddDependency(id, other, "human")
		}
		if err != nil {
			return nil, err
		}
		if !slices.Contains(changed, "depends_on") {
			changed = append(changed, "depends_on")
		}
	}
	return changed, nil
}
