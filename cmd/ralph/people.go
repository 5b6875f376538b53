package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ralph/internal/state"
	"ralph/internal/text"
)

// Advice for a session that tries a command for people only.
const (
	useAsk     = "ask with the tool ralph_signal_ask, or comment_on_task, and a person decides"
	useComment = "say it with the tool comment_on_task"
	useClose   = "close the session with the tool ralph_signal_done, partial or stuck"
	useSuggest = "suggest a task with the tool ralph_signal_suggest, and a person decides"
	useAmend   = "propose the change with the tool propose_task_amendment, and a person decides"
	useLearned = "report a learning with the tool ralph_signal_learned"
	useBlocked = "report the obstacle with the tool ralph_signal_blocked"
	useNothing = "if the task needs it, " + useAsk
)

// reads marks a command that decides nothing for people, so that sessions may run it.
const reads = ""

// powers gives, for every command, the advice to a session that tries it, or reads. A session must
// not decide for people (trust, "Agents are not people").
var powers = map[string]string{
	"init": useNothing, "doctor": reads, "demo": reads, "man": reads,
	"config": reads, "notify": useNothing,

	"task add": useSuggest, "task list": reads, "task show": reads, "task graph": reads,
	"task edit": useAmend, "task move": useAmend,
	"task retry": useNothing, "task cancel": useNothing,
	"task block": useBlocked, "task unblock": useNothing,
	"task split": useSuggest,
	"plan":       useSuggest, "plan show": reads,
	"plan edit": useNothing, "plan approve": useNothing, "plan reject": useNothing,
	"feature": reads, "discipline": reads,
	"import": useSuggest, "export": reads,

	"run": useNothing, "stop": useClose, "skip": useClose, "pause": useNothing, "resume": useNothing,
	"status": reads, "watch": reads,
	"serve":   "read with `ralph status`, `ralph inbox` and `ralph report`",
	"service": useNothing,

	"undo": useNothing, "forge": reads, "forge sync": useNothing,
	"diff": reads, "inbox": reads, "answer": useAsk, "comment": useComment, "resolve": useAsk,
	"approve": useNothing, "reject": useNothing,
	"amendment list": reads, "amendment propose": useAmend,
	"amendment rollback": useNothing, "permission": reads, "protect": useNothing,

	"verify":   "run the commands themselves: ralph keeps the results of `ralph verify`",
	"timeline": reads, "prompt": reads, "report": reads, "events": reads,
	"session list": reads, "session show": reads, "session log": reads,
	"session open": useNothing,
	"chat claim":   useNothing, "chat complete": useClose, "chat release": useClose,
	"chat info": reads, "chat watch": reads,
	"chat start": useNothing, "chat stop": useNothing,
	"chat checkpoint": "report your phase with the tool update_session_state",
	"learning list":   reads, "learning add": useLearned, "learning edit": useLearned,
	"learning forget": useNothing, "learning merge": useNothing,
	"workspace list": reads, "workspace remove": useNothing, "merge": reads,
	"machine list": reads, "machine drain": useNothing, "machine remove": useNothing,

	"db check": reads, "db backup": reads, "db restore": useNothing,
	"db url": reads, "db move": useNothing,

	// Profiles for sessions that ralph starts itself. newMCP refuses all others.
	"mcp": reads, "hook": reads, "signal": reads, "scripted-agent": reads,
}

// readsAfterAll are flags that make a deciding command read-only; decidesAfterAll are flags that
// make a reading command decide.
var (
	readsAfterAll   = map[string]string{"run": "dry-run", "import": "dry-run"}
	decidesAfterAll = map[string]string{"inbox": "interactive", "session show": "hidden", "merge": "now"}

	// decidesByFlags are commands that read without flags, and decide with any of their own flags.
	decidesByFlags = []string{"feature", "discipline"}
)

// forPeople makes every deciding command refuse to run inside a session.
func (a *app) forPeople(root *cobra.Command) {
	for _, cmd := range leaves(root) {
		name := strings.TrimPrefix(cmd.CommandPath(), root.Name()+" ")
		if long, ok := shortcuts[name]; ok {
			name = long
		}
		instead, carryOut := powers[name], cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			decides, instead := instead != reads, instead
			if flag := readsAfterAll[name]; flag != "" && cmd.Flags().Changed(flag) {
				decides = false
			}
			if flag := decidesAfterAll[name]; flag != "" && cmd.Flags().Changed(flag) {
				decides, instead = true, useAsk
			}
			if slices.Contains(decidesByFlags, name) {
				cmd.LocalNonPersistentFlags().Visit(func(*pflag.Flag) { decides, instead = true, useNothing })
			}
			if decides {
				if err := a.refuseInSession(cmd.Context(), instead); err != nil {
					return err
				}
			}
			return carryOut(cmd, args)
		}
	}
}

// leaves returns the commands without subcommands.
func leaves(cmd *cobra.Command) (list []*cobra.Command) {
	for _, c := range cmd.Commands() {
		list = append(list, leaves(c)...)
	}
	if name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" "); cmd.RunE != nil &&
		(!cmd.HasSubCommands() || powers[name] != reads) {
		list = append(list, cmd)
	}
	return list
}

// refuseInSession refuses a command for people only if this process belongs to a session of the
// project, and records the attempt.
func (a *app) refuseInSession(ctx context.Context, instead string) error {
	dir, err := a.dir()
	if err != nil {
		return nil //nolint:nilerr // the command itself reports the problem
	}
	home, err := state.Locate(ctx, dir, a.environ)
	if err != nil {
		return nil //nolint:nilerr // without a queue there is nothing to decide; the command itself reports it
	}
	command := text.Line(strings.Join(append([]string{"ralph"}, os.Args[1:]...), " "), 200)
	name, err := home.Inside(ctx, a.environ, dir, command)
	if name == "" && err == nil {
		return nil // a session of another project
	}
	if err != nil {
		return usage(fmt.Errorf("`%s` is for people, and this may be a session of an agent, which cannot be told (%w): %s",
			command, err, instead))
	}
	return usage(fmt.Errorf("`%s` is for people, and this is %s: %s", command, name, instead))
}
