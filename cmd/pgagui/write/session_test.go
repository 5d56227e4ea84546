package write

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/testfile"
)

func TestSessionStateIsKeptByteForByte(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	const document = " {\"$type\": \"Memory\",\n\t\"a\": \"\\u0000\\ud83d\", \"a\": 1e400}\n\n"
	file := filepath.Join(t.TempDir(), "memory.json")
	testfile.Write(t, file, []byte(document))
	if version := commands.Must("session", "put", "t", "memory", file, "--run", "r1"); version != "1\n" {
		t.Errorf("version %q", version)
	}
	if result := commands.RunWithInput(document+" ", "session", "put", "t", "memory", "-", "--run", "r2", "--expected-version", "1"); result.Code != cli.ExitOK || result.Out != "2\n" {
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
		if got := commands.Must(append([]string{"session", "get", "t", "memory"}, test.arguments...)...); got != test.want {
			t.Errorf("session get %s: %q, want %q", test.arguments, got, test.want)
		}
	}
	state := clitest.Parse[pgagui.SessionState](commands, "session", "get", "t", "memory", "--run", "r3")
	if state.Key != "memory" || state.RunID != "r2" || state.Version != 2 || state.SavedAt.IsZero() ||
		string(state.JSON) != `{"$type":"Memory","a":"\u0000\ud83d","a":1e400}` {
		t.Errorf("JSON: %+v %s", state, state.JSON)
	}

	// All documents of a session, printed and saved.
	session := commands.Must("session", "get", "t", "--run", "r3")
	if want := `{"threadId":"t","runId":"r3","state":{"memory":` + document + ` },"versions":{"memory":2}}`; session != want {
		t.Errorf("session %q, want %q", session, want)
	}
	changed := strings.Replace(session, `"state":{`, `"state":{"todo":[], `, 1)
	if result := commands.RunWithInput(changed, "session", "put", "--session", "t"); result.Code != cli.ExitOK || result.Out != `{"memory":2,"todo":1}`+"\n" {
		t.Errorf("put --session: %+v", result)
	}
}

func TestSessionListAndRemove(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	put := func(document string, arguments ...string) {
		t.Helper()
		if result := commands.RunWithInput(document, append([]string{"session", "put", "t"}, arguments...)...); result.Code != cli.ExitOK {
			t.Fatalf("put %s: %+v", arguments, result)
		}
	}
	put(`{"a":1}`, "memory", "--run", "r1")
	put(`[]`, "todo")
	put(`{"a":2}`, "memory", "--run", "r2", "--overwrite")
	withoutTime := func(table string) string {
		var lines []string
		for line := range strings.SplitSeq(strings.TrimSuffix(table, "\n"), "\n") {
			lines = append(lines, clitest.WithoutTimes(line))
		}
		return strings.Join(lines, "\n")
	}
	if table := withoutTime(commands.Must("session", "ls", "t", "--run", "r3")); table != "KEY VERSION RUN SAVED SIZE\nmemory 2 r2 7 B\ntodo 1 - 2 B" {
		t.Errorf("table:\n%s", table)
	}
	if removed := commands.Must("session", "rm", "t", "memory", "--run", "r2", "--expected-version", "2"); removed != "3\n" {
		t.Errorf("removed %q", removed)
	}
	if removed := commands.Must("session", "rm", "t", "nothing"); removed != "0\n" {
		t.Errorf("removed %q", removed)
	}
	if keys := clitest.Parse[[]sessionEntry](commands, "session", "ls", "t", "--run", "r3"); len(keys) != 1 || keys[0].Key != "todo" || keys[0].Bytes != 2 || keys[0].RunID != "" {
		t.Errorf("keys %+v", keys)
	}
	versions := clitest.Parse[[]sessionEntry](commands, "session", "ls", "t", "--versions", "memory", "--run", "r2")
	if len(versions) != 2 || !versions[0].Removed || versions[0].Version != 3 || versions[1].Version != 2 || versions[1].RunID != "r2" {
		t.Errorf("versions %+v", versions)
	}
	if table := commands.Must("session", "ls", "t", "--versions", "memory", "--run", "r2"); !strings.Contains(table, "removed\n") {
		t.Errorf("table:\n%s", table)
	}
	put(`3`, "memory", "--head", "--overwrite")
	if state := clitest.Parse[pgagui.SessionState](commands, "session", "get", "t", "memory", "--head"); state.RunID != "r4" || string(state.JSON) != "3" {
		t.Errorf("the head has %+v", state)
	}
	if removed := commands.Must("session", "rm", "t", "memory", "--head"); removed != "5\n" {
		t.Errorf("removed %q", removed)
	}
}

func TestSessionFailures(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	notJSON := clitest.WriteFile(t, "broken.json", `{`, ` "a": 1,`, ` b`, `}`)
	notUTF8 := clitest.WriteFile(t, "latin1.json", `{`, "\"\xe9\"}")
	session := clitest.WriteFile(t, "session.json", `{"threadId":"u","state":{}}`)
	commands.Must("session", "put", "t", "k", session)
	for _, test := range []struct {
		arguments string
		code      int
		saying    string
	}{
		{"session", cli.ExitUsage, "get, put, ls or rm"},
		{"session get", cli.ExitUsage, "a thread"},
		{"session put t", cli.ExitUsage, "a thread and a key"},
		{"session rm t", cli.ExitUsage, "a thread and a key"},
		{"session get t k --run r1 --head", cli.ExitUsage, "--head"},
		{"session get t --version 1", cli.ExitUsage, "KEY"},
		{"session put --session t --run r1", cli.ExitUsage, "--session"},
		{"session rm t k --expected-version -1", cli.ExitUsage, "--expected-version"},
		{"session put t k " + notJSON, cli.ExitInput, notJSON + ":3: the document is not valid JSON"},
		{"session put t k " + notUTF8, cli.ExitInput, notUTF8 + ":2: the document is not valid UTF-8"},
		{"session put t k", cli.ExitInput, "stdin:1: "},
		{"session put t k no-such-file", cli.ExitInput, "no-such-file"},
		{"session put --session t " + session, cli.ExitInput, `session.json:1: the session belongs to thread "u", not "t"`},
		{"session put t k " + session + " --expected-version 7", cli.ExitRefused, "the current version is 1. Another writer has saved it"},
		{"session put t k " + session, cli.ExitRefused, "the writer has read that there is none, but the current version is 1"},
		{"session put t k " + session + " --expected-version 1 --overwrite", cli.ExitUsage, "--overwrite"},
		{"session put t k " + session + " --run r9", cli.ExitRefused, `run "r9" of thread "t" is unknown`},
		{"session get t nothing", cli.ExitRefused, `thread "t" itself has no document under the key "nothing"`},
		{"session get t nothing --run r1", cli.ExitRefused, `run "r1" of thread "t" has no document under the key "nothing"`},
		{"session get t k --version 9", cli.ExitRefused, "version 9"},
		{"session get nobody --head", cli.ExitRefused, `thread "nobody" is unknown`},
		{"session ls t --run r9", cli.ExitRefused, `run "r9" of thread "t" is unknown`},
	} {
		if message := commands.MustFail(test.code, strings.Fields(test.arguments)...); !strings.Contains(message, test.saying) {
			t.Errorf("pgagui %s: %s, which does not say %q", test.arguments, message, test.saying)
		}
	}
}
