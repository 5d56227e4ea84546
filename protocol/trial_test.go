package protocol_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
)

// trial is an entry for a type that does not exist, and that begins a message.
const trial = `    "TEST_NOTE_START": {
      "meaning": "A note begins.",
      "since": "2",
      "olderClientsTake": "TEXT_MESSAGE_START",
      "part": "text",
      "does": "start",
      "closes": "own",
      "brings": ["messageId"],
      "changes": ["messages"],
      "fields": {
        "messageId": {"kind": "string", "required": true, "effect": "As in TEXT_MESSAGE_START."},
        "role": {"kind": "string", "effect": "As in TEXT_MESSAGE_START."},
        "subagentRunId": {"kind": "string", "effect": "As in TEXT_MESSAGE_START."},
        "metadata": {"kind": "object", "effect": "As in TEXT_MESSAGE_START."}
      }
    },
`

// A new type is one entry of the list: all that reads events knows it then. The tests with the tag trial run on the code that is
// generated with that entry, in place of the code of the checkout: the folds, the origin of a message, histories, replays, ends,
// compaction, the branch of an edited conversation, the live filter, and the generators of streams.
func TestANewTypeIsOneEntry(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and tests several packages")
	}
	t.Parallel()
	source := testfile.Read(t, "events.json")
	const before = `    "TEXT_MESSAGE_CONTENT": {`
	with := bytes.Replace(source, []byte(before), []byte(trial+before), 1)
	folder := t.TempDir()
	events := filepath.Join(folder, "events.json")
	testfile.Write(t, events, with)
	root, err := filepath.Abs("..")
	must.Do(t, err)
	run(t, root, "go", "run", "./protocol/generate", "-events", events, "-out", folder)

	// The generated files stand in place of those of the checkout. One lists what is about no message, one the members, the others have no types.
	replace := map[string]string{filepath.Join(root, "protocol/events.json"): events}
	err = filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path == events {
			return err
		}
		name, err := filepath.Rel(folder, path)
		replace[filepath.Join(root, name)] = path
		text, readErr := os.ReadFile(path)
		if readErr != nil {
			return readErr
		}
		others := []string{
			"internal/refusal/table_generated.go", "errors_generated.go", "server/face/ambient/codes_generated.go", "docs/reference/errors.md",
			"js/client/src/states.ts", "js/postgres/src/states.ts", "js/client/src/protocol.ts", "python/src/pgagui/errors.py",
			"python/src/pgagui/_members.py",
		}
		if isOfTheList := !slices.Contains(others, name); isOfTheList != strings.Contains(string(text), "TEST_NOTE_START") {
			t.Errorf("%s: has the type: %t", name, !isOfTheList)
		}
		return err
	})
	must.Do(t, err)
	overlay := must.Have(json.Marshal(map[string]any{"Replace": replace}))(t)
	file := filepath.Join(t.TempDir(), "overlay.json")
	testfile.Write(t, file, overlay)
	output := run(t, root, "go", "test", "-overlay", file, "-tags", "trial", "-vet", "off", "-count", "1", "-v",
		"-run", "Trial|TestEachActionHasItsCode|TestStreamsHoldAllTypesOfEvents",
		"./test", "./server", "./server/accept", "./compaction", "./compaction/compactiontest")
	if passed := strings.Count(output, "\n--- PASS: TestTrial"); passed < 4 {
		t.Errorf("only %d tests of the trial ran:\n%s", passed, output)
	}
}

func run(t *testing.T, folder, name string, arguments ...string) string {
	t.Helper()
	command := exec.Command(name, arguments...)
	command.Dir = folder
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, output)
	}
	return string(output)
}
