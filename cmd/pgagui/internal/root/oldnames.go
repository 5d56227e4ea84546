package root

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

// oldNames are the commands that were renamed, with what to call instead. The old names work as they
// did: the rest of the command line goes to the new one. Help and completion leave them out.
var oldNames = map[string]string{
	"allow":           "retention allow",
	"branches":        "log --branches",
	"cluster unpin":   "cluster pin --remove",
	"compact":         "job compact",
	"consumers":       "feed consumers",
	"consumers ls":    "feed consumers",
	"export":          "events",
	"follow":          "events --follow",
	"heads":           "verify --print-heads",
	"history":         "events --page",
	"hold":            "", // had only those below
	"hold lift":       "retention hold --lift",
	"hold ls":         "retention hold",
	"hold set":        "retention hold --reason=",
	"project":         "job project",
	"reap":            "job reap",
	"repack":          "job repack",
	"restore":         "show --document",
	"retention plan":  "retention apply --dry-run",
	"runs":            "log --all-threads",
	"status":          "show --status",
	"subagents":       "show --subagents",
	"usage":           "show --usage",
	"webhook disable": "webhook set --enabled=false",
	"webhook drop":    "webhook failures --drop",
	"webhook enable":  "webhook set --enabled",
	"webhook retry":   "webhook failures --retry",
}

// oldFlags are the flags of old names that were renamed.
var oldFlags = map[string]string{
	"follow --history":    "--compact",
	"history --after-seq": "--after",
}

// addOldNames makes the program find the old names.
func addOldNames(root *cobra.Command) {
	for _, old := range slices.Sorted(maps.Keys(oldNames)) { // a parent before what is under it
		words := strings.Fields(old)
		last := len(words) - 1
		parent, _, _ := root.Find(words[:last])
		command := &cobra.Command{Use: words[last], Deprecated: oldNames[old], DisableFlagParsing: true, Run: func(*cobra.Command, []string) {}}
		if command.Deprecated == "" {
			parent.AddCommand(&cobra.Command{Use: old, Hidden: true, Args: cli.NoArguments, RunE: cli.NeedsSubcommand("ls, set or lift")})
			continue
		}
		command.SetHelpFunc(func(command *cobra.Command, _ []string) {
			renamed, _, _ := root.Find(strings.Fields(command.Deprecated))
			_ = renamed.Help()
		})
		parent.AddCommand(command)
	}
}

// withNewName returns the command line with the new name of its command. If it has an old one, a line
// of hints says so.
func withNewName(root *cobra.Command, arguments []string, hints io.Writer) []string {
	if last := len(arguments) - 1; last > 0 && strings.HasPrefix(arguments[0], cobra.ShellCompRequestCmd) {
		completed := withNewName(root, arguments[1:last], io.Discard)
		return slices.Concat(arguments[:1], completed, arguments[last:])
	}
	command, rest, _ := root.Find(arguments)
	if command.Deprecated == "" {
		return arguments
	}
	fmt.Fprintf(hints, "%q is now %q\n", command.CommandPath(), root.Name()+" "+command.Deprecated)
	for i, argument := range rest {
		flag, _, _ := strings.Cut(argument, "=")
		if name := oldFlags[command.Name()+" "+flag]; name != "" {
			rest[i] = name + strings.TrimPrefix(argument, flag)
			fmt.Fprintf(hints, "%s is now %s\n", flag, name)
		}
	}
	return append(strings.Fields(command.Deprecated), rest...)
}
