package protocol_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/protocol"
)

// A schema is what @ag-ui/core says of a field.
type schema struct {
	Kinds    []string
	Required bool
	Values   []string
}

// The list has the types and the fields of the package that it names, no other ones, and says the same of them.
func TestTypesAreThoseOfTheReference(t *testing.T) {
	t.Parallel()
	list := protocol.Events()
	core := must.Have(filepath.Abs("../test/oracle/node_modules/@ag-ui/core"))(t)
	manifest, err := os.ReadFile(filepath.Join(core, "package.json"))
	if err != nil {
		testneeds.Skip(t, testneeds.Node, "the official client is not installed: make oracle-client")
	}
	var installed struct{ Name, Version string }
	must.Do(t, json.Unmarshal(manifest, &installed))
	if name := installed.Name + " " + installed.Version; name != list.Reference {
		t.Errorf("the list is about %s, but %s is installed", list.Reference, name)
	}
	output, err := exec.Command("node", "core.mjs", core).Output()
	if err != nil {
		t.Fatalf("node core.mjs: %v", err)
	}
	var reference map[string]map[string]schema
	must.Do(t, json.Unmarshal(output, &reference))
	if len(reference) < 31 {
		t.Fatalf("%s has only %d types", list.Reference, len(reference))
	}

	for i := range list.Types {
		e := &list.Types[i]
		fields, ok := reference[e.Name]
		if ok != e.IsCurrent() {
			t.Errorf("%s: current in the list: %t, in %s: %t", e.Name, e.IsCurrent(), list.Reference, ok)
		}
		if !ok {
			continue
		}
		delete(reference, e.Name)
		known := map[string]bool{}
		for _, f := range slices.Concat(list.Fields, e.Fields) {
			if strings.Contains(f.Name, ".") || f.InsteadOf != "" {
				continue // a part of a field; a proposal
			}
			known[f.Name] = true
			of, ok := fields[f.Name]
			if !ok {
				t.Errorf("%s: %s is no field in %s", e.Name, f.Name, list.Reference)
				continue
			}
			kinds := strings.Split(f.Kind, " | ")
			slices.Sort(kinds)
			if !slices.Equal(kinds, of.Kinds) || f.Required != of.Required || !slices.Equal(f.Values, of.Values) {
				t.Errorf("%s: %s: %q, required %t, %q, but in %s %q, required %t, %q",
					e.Name, f.Name, kinds, f.Required, f.Values, list.Reference, of.Kinds, of.Required, of.Values)
			}
		}
		for name := range fields {
			if !known[name] {
				t.Errorf("%s: the list lacks the field %s", e.Name, name)
			}
		}
	}
	for name := range reference {
		t.Errorf("the list lacks the type %s", name)
	}
}

// The limits that rules name are settings.
func TestLimitsAreSettings(t *testing.T) {
	t.Parallel()
	page := testfile.Read(t, "../docs/reference/settings.md")
	checked := 0
	for _, e := range protocol.Events().Types {
		for _, f := range e.Fields {
			for _, limit := range f.Limits {
				checked++
				if !strings.Contains(string(page), "| `"+limit+"` |") {
					t.Errorf("%s: %s: docs/reference/settings.md has no setting %s", e.Name, f.Name, limit)
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no rule has a limit")
	}
}

// README.md explains each member.
func TestMembersAreExplained(t *testing.T) {
	t.Parallel()
	page := testfile.Read(t, "README.md")
	source := append(testfile.Read(t, "events.json"), testfile.Read(t, "errors.json")...)
	explained := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)`").FindAllSubmatch(page, -1) {
		explained[string(row[1])] = true
	}
	members := map[string]bool{}
	for _, key := range regexp.MustCompile(`(?m)(?:^ {2}(?: {4})?"(\w+)":|[{,] ?"(\w+)":)`).FindAllSubmatch(source, -1) {
		members[string(key[1])+string(key[2])] = true
	}
	for member := range members {
		if !explained[member] {
			t.Errorf("README.md does not explain %q", member)
		}
	}
	for member := range explained {
		if !members[member] && member != "olderClientsTake" {
			t.Errorf("README.md explains %q, which no list has", member)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"types":{"A":{},"A":{}}}`:                                                       "A stands twice",
		`{"types":{"A":{"part":"tail","does":"start"}}}`:                                  `no part "tail"`,
		`{"parts":{"p":{}},"types":{"A":{"part":"p","does":"stop"}}}`:                     `not "stop"`,
		`{"parts":{"p":{"id":"x"}},"types":{"A":{"part":"p","does":"start"}}}`:            `no field "x"`,
		`{"types":{"A":{"became":"B"}}}`:                                                  `no type "B"`,
		`{"types":{"A":{"brings":["f"],"fields":{"f":{"kind":"string","meaning":"m"}}}}}`: `nothing finds a message by "f"`,
		`{"types":{"A":{"closes":"both"}}}`:                                               `not "both"`,
		`{"types":{"A":{"fields":{"f":{"kind":"text","meaning":"m"}}}}}`:                  `no kind "text"`,
		`{"types":{"A":{"fields":{"f":{"kind":"string"}}}}}`:                              "a meaning or an effect",
		`{"types":{"A":{"fields":{"f":{"kind":"string","meaning":"m","effect":"e"}}}}}`:   "a meaning or an effect",
		`{"types":{"A":{"colour":"red"}}}`:                                                "colour",
	} {
		if _, err := protocol.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error with %q", text, err, want)
		}
	}
}
