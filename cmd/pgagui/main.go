// Command pgagui works on AG-UI event streams stored in PostgreSQL: it installs the schema, imports
// and exports logs, shows the tree of runs, restores conversations, and runs the maintenance jobs.
//
// Each folder has a group of commands, and each command has its own file. internal/root puts them
// together, internal/cli has what they share.
package main

import "github.com/pgagui/pgagui/cmd/pgagui/internal/root"

func main() { root.Main() }
