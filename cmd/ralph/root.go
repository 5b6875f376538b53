package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newRoot(a *app) *cobra.Command {
	root := noun("ralph")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetIn(a.in)
	root.PersistentFlags().StringVarP(&a.chdir, "directory", "C", "", "work as if started in `DIR`")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	// Wrong flags and arguments are errors of usage, exit status 2.
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"setup", "Set up:", []*cobra.Command{
			newInit(a), newDoctor(a), newVerify(a), newConfig(a), newNotify(a), newDemo(a), newVersion(a),
		}},
		{"queue", "Fill the queue:", []*cobra.Command{
			newTask(a), newFeature(a), newDiscipline(a), newImport(a), newExport(a),
		}},
		{"run", "Run:", []*cobra.Command{
			newRun(a), newStop(a), newSkip(a), newPause(a), newResume(a), newStatus(a), newWatch(a), newServe(a), newService(a),
		}},
		{"decide", "Decide:", []*cobra.Command{
			newInbox(a), newAnswer(a), newComment(a), newSuggestion(a), newAmendment(a), newResolve(a), newApprove(a),
			newPermission(a),
		}},
		{"look", "Look back:", []*cobra.Command{
			newTimeline(a), newSession(a), newLearning(a), newPrompt(a), newReport(a), newEvents(a), newReplay(a),
			newSnapshot(a),
		}},
		{"self", "Drive yourself, with `task claim`, `task complete` and `task release`:", []*cobra.Command{
			newToken(a), newInitMCP(a), newMCP(a),
		}},
		{"keep", "Keep:", []*cobra.Command{newDB(a)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID("keep")
	root.SetCompletionCommandGroupID("keep")
	root.AddCommand(newHook(a), newScriptedAgent(a), newMan(a))
	a.forPeople(root)
	checkArguments(root)
	if err := errors.Join(explain(root), a.complete(root)); err != nil {
		panic(err) // which only a change of this package can cause
	}
	return root
}

// checkArguments makes wrong numbers of arguments and unknown subcommands errors
// of usage, for every command.
func checkArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err != nil && !cmd.HasSubCommands() {
				if strings.Contains(err.Error(), "arg(s)") {
					err = fmt.Errorf("wrong number of arguments (%d)", len(args))
				}
				err = fmt.Errorf("%w; it is used as: %s", err, cmd.UseLine())
			}
			return usage(err)
		}
	}
	for _, c := range cmd.Commands() {
		checkArguments(c)
	}
}
