// Package routes says of each function of the schema agui which node of a cluster has the answer, and what a front does with
// a call, as the comments above the functions in sql/functions have it. Tests check each node by it, and write docs/reference/routes.md.
package routes

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pgagui/pgagui/sql/functions"
)

// By is what decides which node a call goes to.
type By string

const (
	Thread        By = "its thread"
	ThreadIfNamed By = "its thread; without one, all nodes"
	Threads       By = "each of its threads"
	AllNodes      By = "all nodes"
	ThisNode      By = "this node alone"
	NoData        By = "no data"
)

// Front is what a front does with a call.
type Front string

const (
	Sent     Front = "sent to the node of the thread"
	OneNode  Front = "sent, if one node has all threads of the call"
	Split    Front = "sent to each node with its threads"
	Merged   Front = "sent to all nodes, and merged"
	Anywhere Front = "sent to any node"
	Local    Front = "answered by the front"
	Refused  Front = "refused"
	Missing  Front = "not there"
)

// Route is that of a function.
type Route struct {
	By    By
	Front Front
	// Instead says what to do instead of a call that a front refuses.
	Instead string
}

// byWord are the routes by what the comment above a function says: "-- route: merged". Without a word a function that must be given a
// thread_id has the first one.
var byWord = map[string]Route{
	"thread":             {Thread, Sent, ""},
	"thread if named":    {ThreadIfNamed, Sent, "name a thread, or call each node"},
	"one node":           {Threads, OneNode, "call once for the threads of each node"},
	"threads":            {Threads, Split, ""},
	"merged":             {AllNodes, Merged, ""},
	"positions":          {AllNodes, Refused, positions},
	"position of thread": {Thread, Refused, positions},
	"medians":            {AllNodes, Refused, "call each node: medians of nodes have no sum"},
	"each node":          {ThisNode, Refused, "call each node"},
	"worker":             {ThisNode, Refused, `use "pgagui worker"`},
	"cluster":            {ThisNode, Refused, `use "pgagui cluster"`},
	"front":              {NoData, Local, ""},
	"any node":           {NoData, Anywhere, ""},
	"missing":            {NoData, Missing, "call any node"},
}

const positions = "call each node: a position is one of its node"

var (
	isRoutine    = regexp.MustCompile(`(?m)^create (?:or replace )?(?:function|procedure|aggregate) `)
	givenAThread = regexp.MustCompile(`[(,]\s*thread_id\s+text\s*[,)]`)
)

// Of returns the routes of all functions, procedures and aggregates by their names.
func Of() (map[string]Route, error) {
	objects, err := functions.Objects(functions.Files)
	all := map[string]Route{}
	for _, object := range objects {
		name, isPublic := strings.CutPrefix(object.Name, "agui.")
		if !isPublic || !isRoutine.MatchString(object.Text) {
			continue
		}
		word := object.Facts["route"]
		if head, _, _ := strings.Cut(object.Text, "\nlanguage "); word == "" && givenAThread.MatchString(head) {
			word = "thread"
		}
		route, isKnown := byWord[word]
		if !isKnown {
			return nil, fmt.Errorf("%s: say above it which node of a cluster answers (-- route: …, of %q), not %q", object.Name, slices.Sorted(maps.Keys(byWord)), word)
		}
		all[name] = route
	}
	return all, err
}
