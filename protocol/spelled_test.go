package protocol_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/protocol"
)

// protocolArea is the generated one.
const protocolArea = "core/protocol"

var (
	// What is no product, has its objects looked at,, or is generated.
	isNotChecked = regexp.MustCompile(`_test\.go$|\.test\.ts$|(^|/)(test|testdata|testing|bench|examples|frameworks|oracle|compactiontest)/|` +
		`_generated\.go$|^sql/functions/|^sql/schema/\d+_[a-z]+\.(up|down)\.sql$|/src/protocol\.ts$|^protocol/|^cmd/pgagui/.*demo[a-z]*\.go$|/openapi\.ts$`)
	comments = map[string]*regexp.Regexp{
		".sql": regexp.MustCompile(`(?s)--[^\n]*|comment on .*?;\n`),
		".go":  regexp.MustCompile(`(?m)^\s*//.*|\s//.*$`),
		".ts":  regexp.MustCompile(`(?m)^\s*(?://|\*|/\*).*|\s//.*$`),
	}
	// An event that is written: {"type":"X"}, newEvent("X", …), newWriter("X").
	written = regexp.MustCompile(`"?type"?: ?"[A-Z_]+"|new(?:Event|Writer|Reader)\("[A-Z_]+"`)
	spelled = regexp.MustCompile("['\"`]([A-Z]+(?:_[A-Z]+)*)['\"`]|['\"`%](_?[A-Z]+_|_[A-Z]+)%?['\"`]")
)

// Only the list knows which types there are. Other files name a type where they write such an event, or where they do something with
// this type alone; spelled.txt has these. RUN_STARTED, RUN_FINISHED and RUN_ERROR may be named anywhere: they are the life of a run.
func TestTypesAreSpelledInTheListAlone(t *testing.T) {
	t.Parallel()
	types := map[string]bool{}
	isFragment := map[string]bool{}
	for _, e := range protocol.Events().Types {
		isOfRun := strings.HasSuffix(e.Does, " run")
		types[e.Name] = !isOfRun
		words := strings.Split(e.Name, "_")
		for i := 1; i < len(words) && !isOfRun; i++ {
			isFragment[strings.Join(words[:i], "_")+"_"] = true
			isFragment["_"+strings.Join(words[i:], "_")] = true
		}
	}
	tracked, err := exec.Command("git", "-C", "..", "ls-files", "*.go", "*.sql", "*.ts").Output()
	if err != nil {
		t.Skip("this is no checkout of git")
	}
	found := map[string][]string{}
	look := func(place, kind, text string) {
		text = comments[kind].ReplaceAllString(text, "")
		text = written.ReplaceAllString(text, "")
		names := map[string]bool{}
		for _, m := range spelled.FindAllStringSubmatch(text, -1) {
			if types[m[1]] {
				names[m[1]] = true
			}
			if isFragment[m[2]] {
				names[m[2]] = true
			}
		}
		if len(names) > 0 {
			found[place] = slices.Sorted(maps.Keys(names))
		}
	}
	for path := range strings.Lines(string(tracked)) {
		path = strings.TrimSpace(path)
		if isNotChecked.MatchString(path) {
			continue
		}
		if text, err := os.ReadFile(filepath.Join("..", path)); err == nil { // else it is removed, but not yet committed
			look(path, filepath.Ext(path), string(text))
		}
	}
	for _, object := range testfile.SQLObjects(t) {
		if object.Area != protocolArea {
			look(object.Name, ".sql", object.Text)
		}
	}

	registered := testfile.Read(t, "spelled.txt")
	for line := range strings.Lines(string(registered)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		path, names, _ := strings.Cut(line, ": ")
		if got := strings.Join(found[path], " "); got != names {
			t.Errorf("spelled.txt says that %s names %q, but it names %q", path, names, got)
		}
		delete(found, path)
	}
	for path, names := range found {
		t.Errorf("%s: names %s: if it does something with these types alone, say so in spelled.txt; if it has a list of types, generate it",
			path, strings.Join(names, " "))
	}
}

// Where a list would cost too much, code looks at a part of the name. The names of the list must fit.
func TestNamesFitTheHotPaths(t *testing.T) {
	t.Parallel()
	list := protocol.Events()
	texts := map[string]string{}
	for _, object := range testfile.SQLObjects(t) {
		texts[object.Name] = object.Text
	}
	const ends = `_(START|END|FINISHED|ERROR)`
	for function, pattern := range map[string]string{
		"agui_internal.fold_steps":       `^@ 'TOOL_CALL_'`,
		"agui.history":                   `^@ 'TOOL_CALL_'`,
		"agui_internal.inspect_events":   `"RUN\\_%'`,
		"agui_internal.may_begin_or_end": `%RUN\\_%`,
		"agui_internal.compact_runs":     `'_CHUNK'`,
		"agui_internal.open_parts":       "'" + ends + "'",
	} {
		if !strings.Contains(texts[function], pattern) {
			t.Errorf("%s does not contain %s any more: remove it here", function, pattern)
		}
	}
	for _, e := range list.Types {
		if isCall := e.Names == "toolCallId"; isCall != strings.HasPrefix(e.Name, "TOOL_CALL_") {
			t.Errorf("%s: names a tool call: %t; the fold takes the prefix TOOL_CALL_ for that", e.Name, isCall)
		}
		if isOfRun := strings.HasSuffix(e.Does, " run"); isOfRun != strings.HasPrefix(e.Name, "RUN_") {
			t.Errorf("%s: is of the life of a run: %t; append takes the prefix RUN_ for that", e.Name, isOfRun)
		}
		if isChunk := e.Does == "chunk"; isChunk != strings.HasSuffix(e.Name, "_CHUNK") {
			t.Errorf("%s: is a chunk: %t; compact_runs looks for _CHUNK", e.Name, isChunk)
		}
		opens := e.Part != "" && (e.Does == "start" || e.Does == "end")
		if opens && !regexp.MustCompile(ends).MatchString(e.Name) {
			t.Errorf("%s: opens or closes something, but its name does not match %s, by which open_parts finds such batches", e.Name, ends)
		}
	}
}

// SQL asks for sets of types by words. Each has types.
func TestSetsExist(t *testing.T) {
	t.Parallel()
	made := testfile.Read(t, "../sql/functions/"+protocolArea+".sql")
	calls := 0
	for _, object := range testfile.SQLObjects(t) {
		if object.Area == protocolArea {
			continue
		}
		for _, call := range regexp.MustCompile(`(?s)event_types\((.*?)\)`).FindAllStringSubmatch(object.Text, -1) {
			calls++
			for _, word := range regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(call[1], -1) {
				if !strings.Contains(string(made), fmt.Sprintf("when '%s' then", word[1])) {
					t.Errorf("%s: no type of protocol/events.json is %q", object.Name, word[1])
				}
			}
		}
	}
	if calls < 20 {
		t.Errorf("only %d calls were found", calls)
	}
}
