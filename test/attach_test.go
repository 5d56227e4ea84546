package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/testdb"
)

// Who attaches in the middle of a run, with the history in short, has in the end what the whole log means: to our reducer, and to the
// client, whose verifier accepts what it gets wherever it accepts the log.
func TestAttachingInTheMiddleOfARunLosesNothing(t *testing.T) {
	t.Parallel()
	for i, kind := range kindsOfStreams {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			store := pgagui.New(testdb.Pool(t), nil)
			var client *oracle
			if kind.clientReads {
				client = startOracle(t, "--verify")
			}
			verified := 0
			for n := range 15 {
				seed := *firstSeed + uint64(n)
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				var stream []json.RawMessage
				border := 0
				for _, event := range compactiontest.Stream(seed<<8+uint64(i), kind.options) {
					switch eventType := compaction.EventType(event); {
					case eventType == "RUN_STARTED":
						border = len(stream) // nothing is open here in a valid stream
					case eventType != "" && !strings.HasPrefix(eventType, "RUN_"):
						stream = append(stream, event)
					}
				}
				past := run("past", stream[:border])
				live := run("live", stream[border:])
				if hasMessageTwice(foldInGo(t, past)) {
					continue // what comes changes both, but a list of messages cannot say that they are one
				}
				thread := fmt.Sprint("thread ", n)
				mustAppend(t, store, thread, "past", past)

				attachAt := 1 + random.IntN(len(live)-1)
				mustAppend(t, store, thread, "live", live[:attachAt])
				shape := []compaction.Shape{compaction.SnapshotShape, compaction.StreamShape}[n%2]
				var attached []json.RawMessage
				var group errgroup.Group
				group.Go(func() error {
					for event, err := range store.Follow(t.Context(), thread, pgagui.FollowOptions{History: shape}) {
						if err != nil {
							return err
						}
						attached = append(attached, event.Payload)
					}
					return nil
				})
				for rest := live[attachAt:]; len(rest) > 0; {
					next := min(1+random.IntN(10), len(rest))
					mustAppend(t, store, thread, "live", rest[:next])
					rest = rest[next:]
				}
				if err := group.Wait(); err != nil {
					t.Fatal(err)
				}

				whole := append(slices.Clone(past), live...)
				problem := differences(foldInGo(t, attached), foldInGo(t, whole))
				if problem == "" && client != nil {
					answers := client.fold(t, whole, attached)
					switch want, got := answers[0], answers[1]; {
					case want.Error != "":
					case got.Error != "":
						problem = "the client refuses it: " + got.Error
					case want.Verified && !got.Verified:
						problem = "the client's verifier refuses it: " + got.VerifyError
					case want.Verified:
						verified++
						fallthrough
					default:
						problem = differences(got, want)
					}
				}
				if problem != "" {
					t.Fatalf("seed %d, shape %s, attached at event %d: %s\nthe log:\n%s\nattached:\n%s", seed, shape, attachAt, problem,
						bytes.Join(rawBytes(whole), []byte("\n")), bytes.Join(rawBytes(attached), []byte("\n")))
				}
			}
			if strings.HasPrefix(kind.name, "valid") && client != nil && verified == 0 {
				t.Error("the client's verifier accepted no stream")
			}
		})
	}
}

func hasMessageTwice(m meaning) bool {
	seen := map[string]bool{}
	for _, message := range m.Messages {
		var fields struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(message, &fields) // messages without an id are never changed
		if fields.ID != "" && seen[fields.ID] {
			return true
		}
		seen[fields.ID] = true
	}
	return false
}

// run gives events a beginning and an end.
func run(runID string, events []json.RawMessage) []json.RawMessage {
	whole := []json.RawMessage{fmt.Appendf(nil, `{"type":"RUN_STARTED","threadId":"t","runId":%q}`, runID)}
	whole = append(whole, events...)
	return append(whole, json.RawMessage(`{"type":"RUN_FINISHED","threadId":"t","runId":"`+runID+`"}`))
}

func mustAppend(t *testing.T, store *pgagui.Store, thread, run string, events []json.RawMessage) {
	t.Helper()
	if _, err := store.Append(t.Context(), thread, run, events); err != nil {
		t.Fatal(err)
	}
}
