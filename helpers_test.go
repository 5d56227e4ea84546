package pgagui_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// inCluster runs the tests that use newStore on a cluster of three nodes.
var inCluster = flag.Bool("cluster", false, "run the tests of Store on three nodes")

// newStore returns a Store on a new database, and a pool of it. With -cluster it is the pool of that of three nodes which has the
// thread t.
func newStore(t testing.TB) (*pgagui.Store, *pgxpool.Pool) {
	t.Helper()
	if !*inCluster {
		pool := testdb.Pool(t)
		return pgagui.New(pool, nil), pool
	}
	testdb.SkipInCluster(t, notInCluster)
	nodes := testdb.Nodes(t, 3)
	return onNodes(nodes, nil), nodes[1].Pool
}

// notInCluster says why a test cannot run on a cluster.
var notInCluster = map[string]string{
	"TestAppendDoesNotWaitForACompactor":     "a transaction on one node has several threads",
	"TestCallersWithAnOldSnapshot":           "a transaction on one node has several threads",
	"TestPagesOfOneMoment":                   "a transaction on one node lists all threads",
	"TestStatusSaysTheOutcome":               "a transaction on one node has several threads",
	"TestFiltersOfThreads":                   "it changes rows of several threads on one database",
	"TestCompactionFindsTheTitle":            "a job runs on one database",
	"TestSetThread":                          "a job runs on one database",
	"TestEveryBeginningAndEndMovesTheThread": "it reads tables of several threads on one database",
	"TestAListShowsWhatAThreadIs":            "it reads tables of several threads on one database",
	"TestAThreadWithSessionStateAlone":       "it reads tables of several threads on one database",
	"TestRunErrorIsFinal":                    "it reads tables of several threads on one database",
	"TestImportedEventsHaveTheirTimes":       "it reads tables of several threads on one database",
	"TestTheTitleIsWhatTheUserSaidFirst":     "it calls functions for several threads on one database",
	"TestTheTreeIsReadByIndex":               "it counts the pages that one database reads",
	"TestTreesAgreeWithAPlainModel":          "it calls functions for several threads on one database",
	"TestStatsCountEventsOnce":               "its two runs, of two nodes, need two commits",
}

// onNodes returns a Store on a cluster.
func onNodes(nodes []testdb.Node, config *pgagui.Config) *pgagui.Store {
	var list []pgagui.Node
	for _, node := range nodes {
		list = append(list, pgagui.Node{Name: node.Name, Pool: node.Pool})
	}
	return pgagui.NewCluster(list, config)
}

func rawEvents(raw ...string) []json.RawMessage {
	list := make([]json.RawMessage, len(raw))
	for i, event := range raw {
		list[i] = json.RawMessage(event)
	}
	return list
}

func started(runID string) string {
	return fmt.Sprintf(`{"type":"RUN_STARTED","runId":%q}`, runID)
}

func startedFrom(runID, parentRunID string) string {
	return fmt.Sprintf(`{"type":"RUN_STARTED","runId":%q,"parentRunId":%q}`, runID, parentRunID)
}

const (
	finished = `{"type":"RUN_FINISHED"}`
	failed   = `{"type":"RUN_ERROR","message":"no answer"}`
)

func token(n int) string {
	return fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"token %d "}`, n)
}

func mustAppend(t testing.TB, store *pgagui.Store, threadID, runID string, raw []json.RawMessage, options ...pgagui.AppendOptions) int64 {
	t.Helper()
	seq, err := store.Append(context.Background(), pgagui.RunRef{ThreadID: threadID, RunID: runID}, raw, merged(options...))
	if err != nil {
		t.Fatalf("append to run %s of thread %s: %v", runID, threadID, err)
	}
	return seq
}

func mustAbandon(t testing.TB, store *pgagui.Store, run pgagui.RunRef, options pgagui.AbandonOptions) {
	t.Helper()
	if _, err := store.Abandon(context.Background(), run, options); err != nil {
		t.Fatalf("abandon run %s of thread %s: %v", run.RunID, run.ThreadID, err)
	}
}

func afterSeq(seq int64) pgagui.AppendOptions { return pgagui.AppendOptions{AfterSeq: &seq} }

// merged is what all of the options say.
func merged(options ...pgagui.AppendOptions) (all pgagui.AppendOptions) {
	for _, o := range options {
		all.AfterSeq = cmp.Or(all.AfterSeq, o.AfterSeq)
		all.ParentRunID = cmp.Or(all.ParentRunID, o.ParentRunID)
		all.NoParent = all.NoParent || o.NoParent
		all.Parallel = all.Parallel || o.Parallel
		all.Strict = all.Strict || o.Strict
		all.TimesFromEvents = all.TimesFromEvents || o.TimesFromEvents
		if o.Input != nil {
			all.Input = o.Input
		}
	}
	return all
}

func mustBegin(t testing.TB, recorder *pgagui.Recorder, run pgagui.RunRef, options pgagui.BeginOptions) *pgagui.Recording {
	t.Helper()
	recording := must.Have(recorder.Begin(t.Context(), run, options))(t)
	return recording
}

func payloads(t testing.TB, store *pgagui.Store, threadID, runID string) []string {
	t.Helper()
	var list []string
	for event, err := range store.Events(context.Background(), threadID, pgagui.EventsOptions{RunID: runID, NoLineage: runID != ""}) {
		must.Do(t, err)
		list = append(list, string(event.JSON))
	}
	return list
}

func mustVerify(t testing.TB, store *pgagui.Store, threadID string) {
	t.Helper()
	problems := must.Have(store.Maintenance().Verify(context.Background(), threadID))(t)
	for _, problem := range problems {
		t.Errorf("verify thread %s: run %q: %s", threadID, problem.RunID, problem.Problem)
	}
}

func joinLines(events []json.RawMessage) string {
	var lines []string
	for _, event := range events {
		lines = append(lines, string(event))
	}
	return strings.Join(lines, "\n")
}
