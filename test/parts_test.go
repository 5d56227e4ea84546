package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// historyInParts returns the events of all parts of the history of a head, and how many parts there are.
func historyInParts(t *testing.T, store *pgagui.Store, thread string, partBytes int) (events []json.RawMessage, parts int) {
	t.Helper()
	options := pgagui.PartOptions{Part: 1, Bytes: partBytes, Custom: pgagui.CustomOfNone}
	for options.Part > 0 {
		part, err := store.AttachPart(t.Context(), thread, options)
		if err != nil {
			t.Fatalf("part %d: %v", options.Part, err)
		}
		events, parts = append(events, part.Events...), parts+1
		options.At, options.Part = pgagui.At{RunID: part.RunID, Seq: part.Position.Seq}, part.NextPart
	}
	return events, parts
}

// A history in parts of any size means what the log means: to our reducer, and to the client, whose verifier accepts it.
func TestPartsOfAHistoryMeanTheWhole(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	reader := startOracle(t, "--verify")
	cut := 0
	for i, kind := range kindsOfStreams {
		t.Run(kind.name, func(t *testing.T) {
			for n := range streamsOfAKind(6) {
				seed := *firstSeed + uint64(n)
				thread := fmt.Sprint(kind.name, " ", n)
				var stream []json.RawMessage
				for _, event := range compactiontest.Stream(seed<<8+uint64(i), kind.options) {
					if eventType := compaction.EventType(event); eventType != "" && !strings.HasPrefix(eventType, "RUN_") {
						stream = append(stream, event)
					}
				}
				log := run("run", stream)
				mustAppend(t, store, thread, "run", log)
				restored := must.Have(store.Restore(t.Context(), thread, pgagui.At{}))(t)
				var meant meaning
				must.Do(t, json.Unmarshal(restored.JSON, &meant))
				events, parts := historyInParts(t, store, thread, 1024)
				if strings.Contains(string(bytes.Join(rawBytes(events), nil)), `"code":"MESSAGE_NOT_SENT"`) {
					continue
				}
				if parts > 1 {
					cut++
				}
				problem := differences(foldInGo(t, events), meant)
				if problem == "" && kind.clientReads {
					answer := reader.fold(t, events)[0]
					if problem = answer.Error + answer.VerifyError; problem == "" {
						problem = differences(answer, meant)
					}
				}
				if problem != "" {
					t.Fatalf("seed %d: %s\nthe log:\n%s\nthe parts:\n%s", seed, problem,
						bytes.Join(rawBytes(log), []byte("\n")), bytes.Join(rawBytes(events), []byte("\n")))
				}
			}
		})
	}
	if cut == 0 {
		t.Error("no history had several parts")
	}
}
