package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
)

func TestSessionStateIsKeptByteForByte(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	const document = " {\"$type\": \"Memory\",\n\t\"a\": \"\\u0000\\ud83d\", \"a\": 1e400}\n\n"
	file := filepath.Join(t.TempDir(), "memory.json")
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	if version := commands.must("session", "put", "t", "memory", file, "--run", "r1"); version != "1\n" {
		t.Errorf("version %q", version)
	}
	if result := commands.runWithInput(document+" ", "session", "put", "t", "memory", "-", "--run", "r2", "--expected-version", "1"); result.code != exitOK || result.out != "2\n" {
		t.Errorf("from stdin: %+v", result)
	}
	for _, test := range []struct {
		want      string
		arguments []string
	}{
		{document, []string{"--run", "r1"}},
		{document, []string{"--head"}}, // r4, whose parent is r1
		{document + " ", []string{"--run", "r3"}},
		{document, []string{"--version", "1"}},
	} {
		if got := commands.must(append([]string{"session", "get", "t", "memory"}, test.arguments...)...); got != test.want {
			t.Errorf("session get %s: %q, want %q", test.arguments, got, test.want)
		}
	}
	state := parse[pgagui.SessionState](commands, "session", "get", "t", "memory", "--run", "r3")
	if state.Key != "memory" || state.RunID != "r2" || state.Version != 2 || state.SavedAt.IsZero() ||
		string(state.JSON) != `{"$type":"Memory","a":"\u0000\ud83d","a":1e400}` {
		t.Errorf("JSON: %+v %s", state, state.JSON)
	}

	// All documents of a session, printed and saved.
	session := commands.must("session", "get", "t", "--run", "r3")
	if want := `{"threadId":"t","runId":"r3","state":{"memory":` + document + ` },"versions":{"memory":2}}`; session != want {
		t.Errorf("session %q, want %q", session, want)
	}
	changed := strings.Replace(session, `"state":{`, `"state":{"todo":[], `, 1)
	if result := commands.runWithInput(changed, "session", "put", "--session", "t"); result.code != exitOK || result.out != `{"memory":2,"todo":1}`+"\n" {
		t.Errorf("put --session: %+v", result)
	}
}

func TestSessionListAndRemove(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	put := func(document string, arguments ...string) {
		t.Helper()
		if result := commands.runWithInput(document, append([]string{"session", "put", "t"}, arguments...)...); result.code != exitOK {
			t.Fatalf("put %s: %+v", arguments, result)
		}
	}
	put(`{"a":1}`, "memory", "--run", "r1")
	put(`[]`, "todo")
	put(`{"a":2}`, "memory", "--run", "r2", "--overwrite")
	withoutTime := func(table string) string {
		var lines []string
		for _, line := range strings.Split(strings.TrimSuffix(table, "\n"), "\n") {
			lines = append(lines, withoutTimes(line))
		}
		return strings.Join(lines, "\n")
	}
	if table := withoutTime(commands.must("session", "ls", "t", "--run", "r3")); table != "KEY VERSION RUN SAVED SIZE\nmemory 2 r2 7 B\ntodo 1 - 2 B" {
		t.Errorf("table:\n%s", table)
	}
	if removed := commands.must("session", "rm", "t", "memory", "--run", "r2", "--expected-version", "2"); removed != "3\n" {
		t.Errorf("removed %q", removed)
	}
	if removed := commands.must("session", "rm", "t", "nothing"); removed != "0\n" {
		t.Errorf("removed %q", removed)
	}
	if keys := parse[[]sessionEntry](commands, "session", "ls", "t", "--run", "r3"); len(keys) != 1 || keys[0].Key != "todo" || keys[0].Bytes != 2 || keys[0].RunID != "" {
		t.Errorf("keys %+v", keys)
	}
	versions := parse[[]sessionEntry](commands, "session", "ls", "t", "--versions", "memory", "--run", "r2")
	if len(versions) != 2 || !versions[0].Removed || versions[0].Version != 3 || versions[1].Version != 2 || versions[1].RunID != "r2" {
		t.Errorf("versions %+v", versions)
	}
	if table := commands.must("session", "ls", "t", "--versions", "memory", "--run", "r2"); !strings.Contains(table, "removed\n") {
		t.Errorf("table:\n%s", table)
	}
	put(`3`, "memory", "--head", "--overwrite")
	if state := parse[pgagui.SessionState](commands, "session", "get", "t", "memory", "--head"); state.RunID != "r4" || string(state.JSON) != "3" {
		t.Errorf("the head has %+v", state)
	}
	if removed := commands.must("session", "rm", "t", "memory", "--head"); removed != "5\n" {
		t.Errorf("removed %q", removed)
	}
}

func TestSessionFailures(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	notJSON := writeFile(t, "broken.json", `{`, ` "a": 1,`, ` b`, `}`)
	notUTF8 := writeFile(t, "latin1.json", `{`, "\"\xe9\"}")
	session := writeFile(t, "session.json", `{"threadId":"u","state":{}}`)
	commands.must("session", "put", "t", "k", session)
	for _, test := range []struct {
		arguments string
		code      int
		saying    string
	}{
		{"session", exitUsage, "get, put, ls or rm"},
		{"session get", exitUsage, "a thread"},
		{"session put t", exitUsage, "a thread and a key"},
		{"session rm t", exitUsage, "a thread and a key"},
		{"session get t k --run r1 --head", exitUsage, "--head"},
		{"session get t --version 1", exitUsage, "KEY"},
		{"session put --session t --run r1", exitUsage, "--session"},
		{"session rm t k --expected-version -1", exitUsage, "--expected-version"},
		{"session put t k " + notJSON, exitInput, notJSON + ":3: the document is not valid JSON"},
		{"session put t k " + notUTF8, exitInput, notUTF8 + ":2: the document is not valid UTF-8"},
		{"session put t k", exitInput, "stdin:1: "},
		{"session put t k no-such-file", exitInput, "no-such-file"},
		{"session put --session t " + session, exitInput, `session.json:1: the session belongs to thread "u", not "t"`},
		{"session put t k " + session + " --expected-version 7", exitRefused, "the current version is 1. Somebody else"},
		{"session put t k " + session, exitRefused, "the writer has read that there is none, but the current version is 1"},
		{"session put t k " + session + " --expected-version 1 --overwrite", exitUsage, "--overwrite"},
		{"session put t k " + session + " --run r9", exitRefused, `run "r9" of thread "t" is unknown`},
		{"session get t nothing", exitRefused, `thread "t" itself has no document under the key "nothing"`},
		{"session get t nothing --run r1", exitRefused, `run "r1" of thread "t" has no document under the key "nothing"`},
		{"session get t k --version 9", exitRefused, "version 9"},
		{"session get nobody --head", exitRefused, `thread "nobody" is unknown`},
		{"session ls t --run r9", exitRefused, `run "r9" of thread "t" is unknown`},
	} {
		if message := commands.mustFail(test.code, strings.Fields(test.arguments)...); !strings.Contains(message, test.saying) {
			t.Errorf("pgagui %s: %s, which does not say %q", test.arguments, message, test.saying)
		}
	}
}
