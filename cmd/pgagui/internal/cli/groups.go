package cli

import "github.com/spf13/cobra"

// HelpGroup is a group of commands in the help.
type HelpGroup struct{ id, title string }

// The groups of the help, in its order.
var (
	GettingStarted = HelpGroup{"start", "Getting started:"}
	Server         = HelpGroup{"serve", "Server:"}
	Events         = HelpGroup{"log", "Events:"}
	Conversations  = HelpGroup{"read", "Conversations:"}
	Maintenance    = HelpGroup{"keep", "Maintenance:"}
)

// AddHelpGroups adds the groups to the root of the commands.
func AddHelpGroups(root *cobra.Command) {
	for _, group := range []HelpGroup{GettingStarted, Server, Events, Conversations, Maintenance} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
	}
}

// With puts commands into the group.
func (g HelpGroup) With(commands ...*cobra.Command) []*cobra.Command {
	for _, command := range commands {
		command.GroupID = g.id
	}
	return commands
}
