package main

import (
	"bytes"
	_ "embed" // topics.txt
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ralph"
	"ralph/internal/lazy"
)

// everyDay has the commands that `ralph help` lists; its topics list the others.
var everyDay = []string{
	"init", "run", "add", "list", "show", "status", "watch", "inbox", "answer", "approve", "reject", "retry", "undo",
	"diff", "report", "stop",
}

// shortcuts are commands at the top level that stand for longer ones.
var shortcuts = map[string]string{
	"add": "task add", "list": "task list", "show": "task show", "retry": "task retry", "cancel": "task cancel",
	"log": "session log",
}

func newRoot(a *app) *cobra.Command {
	root := noun("ralph")
	root.Version = built()
	root.Flags().Bool("version", false, "print the version")
	root.SetVersionTemplate("ralph {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetIn(a.in)
	root.PersistentFlags().StringVarP(&a.chdir, "directory", "C", "", "work as if started in `DIR`")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	// Wrong flags and arguments are usage errors, exit status 2.
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(didYouMean(cmd, plainly(err))) })
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"setup", "Set up:", []*cobra.Command{
			newInit(a), newDoctor(a), newVerify(a), newConfig(a), newNotify(a), newDemo(a),
		}},
		{"queue", "Fill the queue:", []*cobra.Command{
			newTaskAdd(a), newTaskList(a), newTaskShow(a), newRetry(a), newTaskCancel(a), newTask(a),
			newPlan(a), newFeature(a), newDiscipline(a), newImport(a), newExport(a),
		}},
		{"running", "Run:", []*cobra.Command{
			newRun(a), newStop(a), newSkip(a), newPause(a), newResume(a), newStatus(a), newWatch(a), newServe(a), newService(a),
			newMerge(a), newForge(a), newWorkspace(a), newMachine(a),
		}},
		{"decide", "Decide:", []*cobra.Command{
			newInbox(a), newAnswer(a), newApprove(a), newReject(a), newComment(a), newResolve(a),
			newAmendment(a), newPermission(a), newProtect(a),
		}},
		{"look", "Look back:", []*cobra.Command{
			newReport(a), newDiff(a), newUndo(a), newSessionLog(a), newSession(a), newTimeline(a), newEvents(a),
			newLearning(a), newPrompt(a),
		}},
		{"yourself", "Work on a task yourself:", []*cobra.Command{newChat(a), newMCP(a)}},
		{"keep", "Look after the database:", []*cobra.Command{newDB(a)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
		// A command without action is a help topic.
		root.AddCommand(&cobra.Command{Use: g.id, Short: strings.TrimSuffix(g.title, ":")})
	}
	for _, t := range topicPages() {
		root.AddCommand(&cobra.Command{Use: t.name, Short: t.short, Long: t.page})
	}
	root.SetHelpCommandGroupID("keep")
	root.SetCompletionCommandGroupID("keep")
	root.AddCommand(newScriptedAgent(a), newSignal(a), newHook(a), newMan(a))
	a.forPeople(root)
	checkArguments(root)
	if err := errors.Join(explain(root), a.complete(root)); err != nil {
		panic(err) // only a bug in this package can cause it
	}
	refuseUnknown(root)
	root.SetHelpTemplate(helpTemplate)
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		var page bytes.Buffer
		switch {
		case cmd == root:
			overview(&page, root)
		case cmd.IsAdditionalHelpTopicCommand() && cmd.Long != "":
			fmt.Fprintf(&page, "%s\n\n%s\n", cmd.Short, cmd.Long)
		case cmd.IsAdditionalHelpTopicCommand() && cmd.Parent() == root:
			topic(&page, root, cmd)
		default:
			cmd.SetOut(&page)
			help(cmd, args)
			cmd.SetOut(nil)
		}
		fmt.Fprint(a.out, a.screen().Fit(page.String()))
	})
	return root
}

// refuseUnknown makes help and completion refuse unknown arguments.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args, completion.RunE = cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		checkArguments(completion)
	}
	if topics, _, err := root.Find([]string{"help"}); err == nil {
		show := topics.Run
		topics.Run, topics.RunE = nil, func(cmd *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			switch {
			case len(args) > 0 && (err != nil || found == root):
				return usage(unknownCommand(root, args))
			case len(rest) > 0 && found.HasSubCommands():
				return usage(unknownCommand(found, rest))
			}
			show(cmd, args)
			return nil
		}
	}
}

// overview prints the output of `ralph help`.
func overview(w io.Writer, root *cobra.Command) {
	fmt.Fprintf(w, "%s\n\nEvery day:\n", root.Long)
	for _, name := range everyDay {
		cmd, _, _ := root.Find([]string{name})
		fmt.Fprintf(w, "  %-9s %s\n", name, cmd.Short)
	}
	fmt.Fprint(w, "\nEverything else, by topic:\n")
	for _, g := range root.Groups() {
		var rest []string
		for _, c := range root.Commands() {
			if c.GroupID == g.ID && !c.Hidden && !slices.Contains(everyDay, c.Name()) {
				rest = append(rest, c.Name())
			}
		}
		fmt.Fprintf(w, "  ralph help %-9s %s\n", g.ID, strings.Join(rest, ", "))
	}
	var pages []string
	for _, t := range topicPages() {
		pages = append(pages, t.name)
	}
	fmt.Fprintf(w, "\nHow it works: ralph help %s\n", strings.Join(pages, " | "))
	fmt.Fprintf(w, "\nOf each command:\n%s", root.LocalFlags().FlagUsages())
	fmt.Fprint(w, "\n`ralph help COMMAND` says more about one, with examples.\n")
}

// helpTemplate prints the purpose of a command, then the details, examples and flags.
const helpTemplate = `{{.Short}}.
{{with .Long}}
{{.}}
{{end}}
Usage:
{{- if .Runnable}}
  {{.UseLine}}{{end}}
{{- if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND

Commands:
{{- range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}
{{- if .HasExample}}

Examples:
{{.Example}}{{end}}
{{- if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}{{end}}
{{- if .HasAvailableInheritedFlags}}

Of each command:
{{.InheritedFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}{{end}}
`

//go:embed topics.txt
var topicsText string

// A topicPage explains how something works, for `ralph help TOPIC`.
type topicPage struct{ name, short, page string }

// topicPages returns the pages of topics.txt.
func topicPages() (list []topicPage) {
	for _, section := range strings.Split(topicsText, "\n# ")[1:] {
		name, text, _ := strings.Cut(strings.TrimSpace(section), "\n")
		short, page, _ := strings.Cut(text, "\n\n")
		list = append(list, topicPage{name, short, page})
	}
	return list
}

// topic lists the commands of a topic.
func topic(w io.Writer, root, of *cobra.Command) {
	fmt.Fprintf(w, "%s:\n", of.Short)
	for _, c := range root.Commands() {
		if c.GroupID == of.Name() && !c.Hidden {
			fmt.Fprintf(w, "  %-10s %s\n", c.Name(), c.Short)
		}
	}
	fmt.Fprint(w, "\n`ralph help COMMAND` says more about one, with examples.\n")
}

// worded matches the usage line of a command that takes a text.
var worded = lazy.Regexp(`\b(TITLE|TEXT|DECISION|REASON)\b`)

// checkArguments makes wrong numbers of arguments and unknown subcommands usage errors.
func checkArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			switch {
			case err != nil && cmd.HasSubCommands():
				err = unknownCommand(cmd, args)
			case err != nil:
				err = fmt.Errorf("wrong number of arguments (%d); it is used as: %s", len(args), cmd.UseLine())
				if len(args) > 0 && check(cmd, nil) == nil && check(cmd, args[:1]) != nil {
					err = fmt.Errorf("`%s` takes no arguments, and was given %q", cmd.CommandPath(), args[0])
				}
				if len(args) > 1 && worded().MatchString(cmd.Use) {
					err = fmt.Errorf("%w (several words go in quotes)", err)
				}
			}
			return usage(err)
		}
	}
	for _, c := range cmd.Commands() {
		checkArguments(c)
	}
}

// meant maps words that people try to commands.
var meant = map[string]string{
	"new": "add", "ls": "list", "edit": "task edit", "logs": "log", "history": "timeline", "done": "chat complete",
	"start": "run", "work": "run", "loop": "run", "kill": "stop --now", "dashboard": "serve", "web": "serve",
	"ps": "status", "cost": "report --by model", "tail": "log -f", "revert": "undo", "split": "task split",
	"claim": "chat claim", "complete": "chat complete", "release": "chat release", "check": "verify",
	"deny": "reject", "allow": "approve", "task done": "chat complete",
	"task claim": "chat claim", "task complete": "chat complete", "task release": "chat release",
	"token":        "chat info --tokens",
	"session info": "chat info", "session watch": "chat watch", "session start": "chat start", "session stop": "chat stop",
	"session clear": "chat release", "learning pin": "learning edit --pin", "learning show": "learning list",
	"amendment approve": "approve A3", "amendment reject": "reject A3", "suggestion approve": "approve TASK-12",
	"suggestion reject": "reject TASK-12", "suggestion edit": "task edit", "suggestion list": "inbox",
	"suggestion adopt": "approve C31", "suggestion split": "task split", "version": "--version",
	"task remove": "cancel", "task delete": "cancel", "task rm": "cancel", "remove": "cancel", "rm": "cancel",
	"delete": "cancel", "task ls": "list", "task new": "add", "task create": "add", "create": "add", "queue": "list",
}

// unknownCommand refuses an unknown command and suggests similar ones.
func unknownCommand(cmd *cobra.Command, args []string) error {
	path := cmd.CommandPath()
	tried := strings.TrimSpace(strings.TrimPrefix(path, cmd.Root().Name()) + " " + args[0])
	if is := meant[tried]; is != "" {
		return fmt.Errorf("there is no command `%s %s`; it is `ralph %s`", path, args[0], is)
	}
	if cmd.SuggestionsMinimumDistance == 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	close := cmd.SuggestionsFor(args[0])
	if len(close) == 0 {
		for _, word := range similar(slices.Collect(maps.Keys(meant)), tried, 1) {
			if is := "`ralph " + meant[word] + "`"; !slices.Contains(close, is) {
				close = append(close, is)
			}
		}
		if len(close) > 0 {
			return fmt.Errorf("there is no command `%s %s`; did you mean %s?", path, args[0], strings.Join(close, " or "))
		}
		return fmt.Errorf("there is no command `%s %s`; `%s --help` lists them", path, args[0], path)
	}
	for i, name := range close {
		close[i] = fmt.Sprintf("`%s %s`", path, name)
	}
	return fmt.Errorf("there is no command `%s %s`; did you mean %s?", path, args[0], strings.Join(close, " or "))
}

// plainly explains a wrong value of a flag without the words of Go's parser.
func plainly(err error) error {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err
	}
	must := "is not what it takes"
	switch wrong.GetFlag().Value.Type() {
	case "int", "int64", "uint":
		must = "must be a whole number"
	case "float64":
		must = "must be a number"
	case "bool":
		must = "must be true or false, or left out"
	case "duration":
		must = "must be a time such as 90s, 45m or 8h"
	}
	return &ralph.FieldError{Field: fmt.Sprintf("--%s %q", wrong.GetFlag().Name, wrong.GetValue()), Problem: must}
}

// didYouMean adds similar flags to the error about an unknown one.
func didYouMean(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		return fmt.Errorf("unknown flag: -%s; `%s --help` lists them, and words that begin with - come after --", short,
			cmd.CommandPath())
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags = append(flags, f.Name)
		}
	})
	if strings.Contains(unknown.GetSpecifiedName(), " ") {
		return fmt.Errorf("%w; words that begin with - come after --", err)
	}
	close := similar(flags, unknown.GetSpecifiedName(), 2)
	if len(close) == 0 {
		return fmt.Errorf("%w; `%s --help` lists them", err, cmd.CommandPath())
	}
	return fmt.Errorf("%w; did you mean --%s?", err, strings.Join(close, " or --"))
}

// similar returns, sorted, the words that begin with the typed one, or differ from it by at most distance letters.
func similar(words []string, typed string, distance int) []string {
	all := &cobra.Command{SuggestionsMinimumDistance: distance} // cobra compares only names of commands
	for _, word := range words {
		if !strings.Contains(word, " ") {
			all.AddCommand(&cobra.Command{Use: word, Run: func(*cobra.Command, []string) {}})
		}
	}
	close := all.SuggestionsFor(typed)
	slices.Sort(close)
	return close
}
