package main

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pgagui/pgagui/protocol"
)

// link is a link of Markdown: in Python its text remains.
var link = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

// errorsInPython writes a class for each refusal.
func errorsInPython(*protocol.List) ([]byte, error) {
	var w bytes.Buffer
	fmt.Fprintf(&w, "# %s\n%s", strings.ReplaceAll(notice, "events.json", "errors.json"), `"""The reasons why the database refuses a call, a class for each. NotFound is a family."""

from __future__ import annotations

from typing import ClassVar

from ._error import Error, Retry

`)
	table := protocol.Errors()
	states := map[string]string{}
	for _, r := range table.Refusals {
		family, about := "Error", r.Cause
		if r.Family != "" {
			family = r.Family
		}
		if about == "" {
			about = strings.ToUpper(r.Text[:1]) + r.Text[1:] + "."
		}
		fmt.Fprintf(&w, "\nclass %s(%s):\n    \"\"\"%s\"\"\"\n\n    sqlstates: ClassVar[tuple[str, ...]] = (%s)\n    status = %d\n    remedy = %q\n\n",
			r.Name, family, link.ReplaceAllString(about, "$1"), inTuple(r.States), r.Status, link.ReplaceAllString(r.Remedy, "$1"))
		for _, state := range r.States {
			states[state] = r.Name
		}
	}
	fmt.Fprint(&w, "\n# The classes by SQLSTATE.\nOF_STATE: dict[str, type[Error]] = {\n")
	for _, state := range slices.Sorted(maps.Keys(states)) {
		fmt.Fprintf(&w, "    %q: %s,\n", state, states[state])
	}
	fmt.Fprint(&w, "}\n\n# What the code and the message of other errors begin with, whether a retry may cure them, and what to do.\nSTATES: tuple[tuple[str, str, Retry, str], ...] = (\n")
	for _, s := range table.States {
		retry := s.Retry
		if retry == "" {
			retry = "permanent"
		}
		fmt.Fprintf(&w, "    (%q, %q, %q, %q),\n", s.Code, s.Message, retry, s.CLI)
	}
	fmt.Fprint(&w, ")\n")
	return w.Bytes(), nil
}

func inTuple(values []string) string {
	var tuple strings.Builder
	for _, value := range values {
		fmt.Fprintf(&tuple, "%q, ", value)
	}
	return strings.TrimSuffix(tuple.String(), " ")
}

// membersInPython writes the members of events as Python spells them, so that they can be refused.
func membersInPython(l *protocol.List) ([]byte, error) {
	names, all := map[string]string{}, slices.Clone(l.Fields)
	for i := range l.Types {
		all = append(all, l.Types[i].Fields...)
	}
	for _, field := range all {
		if snake := inSnakeCase(field.Name); snake != field.Name {
			names[snake] = field.Name
		}
	}
	var w bytes.Buffer
	fmt.Fprintf(&w, "# %s\n\"\"\"The members of events, by their names in Python.\"\"\"\n\nCAMEL = {\n", notice)
	for _, snake := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&w, "    %q: %q,\n", snake, names[snake])
	}
	fmt.Fprint(&w, "}\n")
	return w.Bytes(), nil
}

var capital = regexp.MustCompile(`[A-Z]`)

func inSnakeCase(name string) string {
	return strings.ToLower(capital.ReplaceAllString(name, "_$0"))
}
