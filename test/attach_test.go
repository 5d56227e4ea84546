package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/recorded"
	"github.com/pgagui/pgagui/internal/testdb"
)

// Who attaches in the middle of a run, with the history in short, has in the end what the whole log means: to our reducer, and to the
// client, whose verifier accepts what it gets wherever it accepts the log.
func TestAttachingInTheMiddleOfARunLosesNothing(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	reader := startOracle(t, "--verify")
	for i, kind := range kindsOfStreams {
		t.Run(kind.name, func(t *testing.T) {
			var client *oracle
			if kind.clientReads {
				client = reader
			}
			verified := 0
			for n := range streamsOfAKind(8) {
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
				thread := fmt.Sprint(kind.name, " ", n)
				mustAppend(t, store, thread, "past", past)

				attachAt := 1 + random.IntN(len(live)-1)
				mustAppend(t, store, thread, "live", live[:attachAt])
				shape := []compaction.Shape{compaction.SnapshotShape, compaction.StreamShape}[n%2]
				var attached []json.RawMessage
				var group errgroup.Group
				var thinking compaction.Thinking
				group.Go(func() error {
					for event, err := range store.Follow(t.Context(), thread, pgagui.FollowOptions{History: shape}) {
						if err != nil {
							return err
						}
						attached = append(attached, thinking.AsReasoning(event.JSON, "live", event.Seq))
					}
					return nil
				})
				for rest := live[attachAt:]; len(rest) > 0; {
					next := min(1+random.IntN(10), len(rest))
					mustAppend(t, store, thread, "live", rest[:next])
					rest = rest[next:]
				}
				must.Do(t, group.Wait())

				whole := append(slices.Clone(past), live...)
				problem := differences(foldInGo(t, attached), foldInGo(t, whole))
				if problem == "" && client != nil {
					answers := client.fold(t, whole, attached)
					problem = toTheClient(answers[0], answers[1], &verified)
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

// toTheClient says how what is attached differs from the log to the client, and counts the logs that its verifier accepts.
func toTheClient(log, attached meaning, verified *int) string {
	switch {
	case log.Error != "":
		return ""
	case attached.Error != "":
		return "the client refuses it: " + attached.Error
	case log.Verified && !attached.Verified:
		return "the client's verifier refuses it: " + attached.VerifyError
	case log.Verified:
		*verified++
	}
	return differences(attached, log)
}

// Attached at any event of the log, in any shape and in one call of SQL, the history and what agui.poll brings behind its position mean what the
// whole log means: what was open at the cut has stayed open.
func TestAttachedInSQLAtAnyEvent(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	reader := startOracle(t, "--verify")
	for i, kind := range kindsOfStreams {
		t.Run(kind.name, func(t *testing.T) {
			var client *oracle
			if kind.clientReads {
				client = reader
			}
			verified := 0
			for n := range streamsOfAKind(12) {
				seed := *firstSeed + uint64(n)
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				thread := fmt.Sprint(kind.name, " ", n)
				log := appendRunByRun(t, store, thread, random, compactiontest.Stream(seed<<8+uint64(i), kind.options))
				whole := foldInGo(t, log)
				attached := [][]json.RawMessage{log}
				var told []string
				for _, shape := range []compaction.Shape{compaction.SnapshotShape, compaction.StreamShape, pgagui.EventsShape} {
					cut := 1 + random.Int64N(int64(len(log)))
					answer := must.Have(store.Attach(t.Context(), thread, pgagui.AttachOptions{At: pgagui.At{Seq: cut}, Shape: shape}))(t)
					if answer.Position.Seq != cut || answer.Position.RecordedAt.IsZero() {
						t.Fatalf("attached at %d: %+v", cut, answer.Position)
					}
					events := append(answer.Events, polled(t, pool, thread, answer.Position)...)
					told = append(told, fmt.Sprintf("seed %d, shape %s, attached at event %d of %d", seed, shape, cut, len(log)))
					attached = append(attached, events)
					if difference := differences(foldInGo(t, events), whole); difference != "" {
						t.Fatalf("%s: %s\nthe log:\n%s\nattached:\n%s", told[len(told)-1], difference, lines(log), lines(events))
					}
				}
				if client == nil {
					continue
				}
				answers := client.fold(t, attached...)
				for n, got := range answers[1:] {
					if problem := toTheClient(answers[0], got, &verified); problem != "" {
						t.Fatalf("%s: %s\nthe log:\n%s\nattached:\n%s", told[n], problem, lines(log), lines(attached[1+n]))
					}
				}
			}
			if strings.HasPrefix(kind.name, "valid") && client != nil && verified == 0 {
				t.Error("the client's verifier accepted no stream")
			}
		})
	}
}

// Whose a message or call is counts within a run: what a list of messages says of earlier runs does not keep others from its ids, and what the run
// in progress has said counts behind the attachment too.
func TestAttachedWhereIDsAreTakenUp(t *testing.T) {
	t.Parallel()
	client := startOracle(t, "--verify")
	store := pgagui.New(testdb.Pool(t), nil)
	part := func(eventType, more string) string { return fmt.Sprintf(`{"type":%q,%s}`, eventType, more) }
	for name, events := range map[string]struct{ past, before, behind []string }{
		"text": {
			past:   []string{part("TEXT_MESSAGE_START", `"messageId":"m"`), part("TEXT_MESSAGE_END", `"messageId":"m"`)},
			behind: []string{part("TEXT_MESSAGE_START", `"messageId":"m","subagentRunId":"s"`), part("TEXT_MESSAGE_END", `"messageId":"m","subagentRunId":"s"`)},
		},
		"reasoning": {
			past:   []string{part("REASONING_MESSAGE_START", `"messageId":"m","role":"reasoning","subagentRunId":"s1"`), part("REASONING_MESSAGE_END", `"messageId":"m"`)},
			behind: []string{part("REASONING_MESSAGE_CHUNK", `"messageId":"m","delta":"x","subagentRunId":"s2"`)},
		},
		"call": {
			past:   []string{part("TOOL_CALL_START", `"toolCallId":"c","toolCallName":"n"`), part("TOOL_CALL_END", `"toolCallId":"c"`)},
			before: []string{part("TEXT_MESSAGE_START", `"messageId":"m"`)},
			behind: []string{
				part("TOOL_CALL_START", `"toolCallId":"c","toolCallName":"n","subagentRunId":"s"`), part("TOOL_CALL_END", `"toolCallId":"c","subagentRunId":"s"`),
				part("TEXT_MESSAGE_END", `"messageId":"m"`),
			},
		},
		"call with the id of a message": {
			past: []string{part("TEXT_MESSAGE_START", `"messageId":"c"`), part("TEXT_MESSAGE_END", `"messageId":"c"`)},
			before: []string{
				part("TOOL_CALL_START", `"toolCallId":"c","toolCallName":"n","subagentRunId":"s"`), part("TOOL_CALL_END", `"toolCallId":"c"`),
			},
			behind: []string{part("TOOL_CALL_START", `"toolCallId":"c","toolCallName":"n","subagentRunId":"s"`), part("TOOL_CALL_END", `"toolCallId":"c"`)},
		},
		"activity of the run in progress": {
			before: []string{part("ACTIVITY_SNAPSHOT", `"messageId":"a","activityType":"PLAN","content":{},"subagentRunId":"s1"`)},
			behind: []string{
				part("ACTIVITY_SNAPSHOT", `"messageId":"a","activityType":"PLAN","content":{},"replace":false,"subagentRunId":"s2"`),
				part("ACTIVITY_DELTA", `"messageId":"a","activityType":"PLAN","patch":[],"subagentRunId":"s1"`),
			},
		},
		"message of the run in progress": {
			before: []string{part("TEXT_MESSAGE_START", `"messageId":"m","subagentRunId":"s"`), part("TEXT_MESSAGE_END", `"messageId":"m"`)},
			behind: []string{
				part("TEXT_MESSAGE_START", `"messageId":"m"`), part("TEXT_MESSAGE_CONTENT", `"messageId":"m","delta":"x","subagentRunId":"s"`),
				part("TEXT_MESSAGE_END", `"messageId":"m"`),
			},
		},
		"open call that is gone": {
			before: []string{
				part("TOOL_CALL_START", `"toolCallId":"c","toolCallName":"n"`), part("MESSAGES_SNAPSHOT", `"messages":[{"role":"user","content":"no id"}]`),
			},
			behind: []string{part("TOOL_CALL_ARGS", `"toolCallId":"c","delta":"x"`), part("TOOL_CALL_END", `"toolCallId":"c"`)},
		},
		"open chunks of a call that is gone": {
			before: []string{
				part("TOOL_CALL_CHUNK", `"toolCallId":"c","toolCallName":"n"`), part("ACTIVITY_SNAPSHOT", `"messageId":"c","activityType":"PLAN","content":{}`),
			},
			behind: []string{part("TOOL_CALL_CHUNK", `"delta":"x"`), part("TOOL_CALL_CHUNK", `"toolCallId":"c","toolCallName":"n","delta":"y"`)},
		},
	} {
		past, live := run("past", rawEvents(events.past...)), run("live", rawEvents(slices.Concat(events.before, events.behind)...))
		mustAppend(t, store, name, "past", past)
		cut := 1 + len(events.before)
		mustAppend(t, store, name, "live", live[:cut])
		answer := must.Have(store.Attach(t.Context(), name, pgagui.AttachOptions{}))(t)
		log, attached := append(past, live...), append(answer.Events, live[cut:]...)
		answers := client.fold(t, log, attached)
		switch want, got := answers[0], answers[1]; {
		case !want.Verified:
			t.Errorf("%s: the verifier refuses the log: %s", name, want.VerifyError)
		case !got.Verified:
			t.Errorf("%s: the verifier refuses\n%s\n%s", name, lines(attached), got.VerifyError)
		case differences(got, want) != "":
			t.Errorf("%s: %s\n%s", name, differences(got, want), lines(attached))
		case differences(foldInGo(t, attached), foldInGo(t, log)) != "":
			t.Errorf("%s: %s\n%s", name, differences(foldInGo(t, attached), foldInGo(t, log)), lines(attached))
		}
	}
}

// A client that reconnects keeps the messages that it has. After it attaches, it has each message of a real agent once, whatever it had seen before.
func TestAClientThatComesBackHasEachMessageOnce(t *testing.T) {
	t.Parallel()
	for _, file := range recorded.Files(t, "..") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			store := pgagui.New(testdb.Pool(t), nil)
			appendRecording(t, store, readRecording(t, file))
			random := rand.New(rand.NewPCG(*firstSeed, 3))
			threads := map[string]bool{}
			for _, run := range readRecording(t, file) {
				threads[run.ThreadID] = true
			}
			for thread := range threads {
				var log []json.RawMessage
				var seqs []int64
				for event, err := range store.Events(t.Context(), thread, pgagui.EventsOptions{}) {
					must.Do(t, err)
					log, seqs = append(log, event.JSON), append(seqs, event.Seq)
				}
				// What a list of messages brings that is new comes last, a tool's result too.
				inAnyOrder := func(m meaning) (texts []string) {
					for _, message := range m.Messages {
						texts = append(texts, canonical(message))
					}
					slices.Sort(texts)
					return texts
				}
				want := foldInGo(t, log)
				for range 5 {
					cut := 1 + random.IntN(len(log))
					seen := random.IntN(cut + 1)
					answer := must.Have(store.Attach(t.Context(), thread, pgagui.AttachOptions{At: pgagui.At{Seq: seqs[cut-1]}}))(t)
					got := foldInGo(t, slices.Concat(log[:seen], answer.Events, log[cut:]))
					if !slices.Equal(inAnyOrder(got), inAnyOrder(want)) || canonical(got.State) != canonical(want.State) {
						t.Errorf("thread %s, attached at event %d of %d with %d seen: %s\n%s", thread, cut, len(log), seen, differences(got, want), lines(answer.Events))
					}
				}
			}
		})
	}
}

// The history and its position are of one moment, while a writer goes on.
func TestAttachingIsOfOneMoment(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	mustAppend(t, store, "t", "r", []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`), json.RawMessage(`{"type":"TEXT_MESSAGE_START","messageId":"m"}`)})
	stop := make(chan struct{})
	var writer errgroup.Group
	writer.Go(func() error {
		for {
			select {
			case <-stop:
				return nil
			default:
			}
			piece := json.RawMessage(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}`)
			if _, err := store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"}, []json.RawMessage{piece, piece}, pgagui.AppendOptions{}); err != nil {
				return err
			}
		}
	})
	for seen := int64(0); seen < 300; {
		for _, shape := range []compaction.Shape{pgagui.EventsShape, compaction.SnapshotShape, compaction.StreamShape} {
			answer := must.Have(store.Attach(t.Context(), "t", pgagui.AttachOptions{Shape: shape}))(t)
			text := 0
			for _, message := range foldInGo(t, answer.Events).Messages {
				text += strings.Count(string(message), "x")
			}
			if int64(text) != answer.Position.Seq-2 {
				t.Errorf("%s: %d pieces at seq %d", shape, text, answer.Position.Seq)
			}
			seen = answer.Position.Seq
		}
	}
	close(stop)
	must.Do(t, writer.Wait())
}

func TestAttachingToWhatIsNotThere(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	ctx := t.Context()
	// A client connects to a thread before its first run: that is no error, and what comes is behind the position.
	answer, err := store.Attach(ctx, "t", pgagui.AttachOptions{})
	if err != nil || answer.RunID != "" || answer.Status != "" || len(answer.Running) > 0 || len(answer.Events) > 0 ||
		answer.Position.Seq != 0 || !answer.Position.RecordedAt.IsZero() {
		t.Fatalf("%+v, %v", answer, err)
	}
	forkedThread(t, store)
	if events := polled(t, pool, "t", answer.Position); len(events) != 9 {
		t.Errorf("%d events came", len(events))
	}
	for _, refused := range []struct {
		thread  string
		options pgagui.AttachOptions
		want    error
	}{
		{"u", pgagui.AttachOptions{At: pgagui.At{RunID: "r1"}}, pgagui.ErrUnknownThread},
		{"t", pgagui.AttachOptions{At: pgagui.At{RunID: "r9"}}, pgagui.ErrUnknownRun},
		{"t", pgagui.AttachOptions{Shape: "small"}, pgagui.ErrUnknownShape},
		{"t", pgagui.AttachOptions{AfterSeq: 3}, pgagui.ErrUnknownShape},
		{"t", pgagui.AttachOptions{AfterSeq: 10, Shape: pgagui.EventsShape}, pgagui.ErrLogRewound},
		{"u", pgagui.AttachOptions{AfterSeq: 1, Shape: pgagui.EventsShape}, pgagui.ErrUnknownThread},
	} {
		if _, err := store.Attach(ctx, refused.thread, refused.options); !errors.Is(err, refused.want) {
			t.Errorf("thread %s, %+v: %v, want %v", refused.thread, refused.options, err, refused.want)
		}
	}
}

// Where a history ends, and which events it has.
func TestAttachingAtARunAndAtAPoint(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	forkedThread(t, store)
	mustAppend(t, store, "t", "r4", []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)})
	for _, test := range []struct {
		options  pgagui.AttachOptions
		runID    string
		status   pgagui.Status
		position int64
		seqs     []int64
	}{
		{pgagui.AttachOptions{}, "r4", pgagui.Running, 10, []int64{1, 2, 3, 7, 8, 9, 10}},
		{pgagui.AttachOptions{At: pgagui.At{RunID: "r2"}}, "r2", pgagui.Finished, 10, []int64{1, 2, 3, 4, 5, 6}},
		{pgagui.AttachOptions{AfterSeq: 8}, "r4", pgagui.Running, 10, []int64{9, 10}},
		{pgagui.AttachOptions{AfterSeq: 10}, "r4", pgagui.Running, 10, nil},
		{pgagui.AttachOptions{At: pgagui.At{Seq: 8}}, "r4", pgagui.Running, 8, []int64{1, 2, 3, 7, 8}},
		{pgagui.AttachOptions{At: pgagui.At{Seq: 5}}, "r4", pgagui.Running, 5, []int64{1, 2, 3}},
		{pgagui.AttachOptions{At: pgagui.At{Seq: 8}, AfterSeq: 2}, "r4", pgagui.Running, 8, []int64{3, 7, 8}},
		{pgagui.AttachOptions{At: pgagui.At{Seq: 4}, AfterSeq: 9}, "r4", pgagui.Running, 9, nil},
		{pgagui.AttachOptions{At: pgagui.At{Time: time.Now().Add(-time.Hour)}}, "r4", pgagui.Running, 0, nil},
		{pgagui.AttachOptions{At: pgagui.At{Time: time.Now().Add(time.Hour), Seq: 1000}}, "r4", pgagui.Running, 10, []int64{1, 2, 3, 7, 8, 9, 10}},
	} {
		test.options.Shape = pgagui.EventsShape
		answer := must.Have(store.Attach(t.Context(), "t", test.options))(t)
		var want []string
		for _, event := range eventsOf(t, pool, "t") {
			if slices.Contains(test.seqs, event.Seq) {
				want = append(want, string(event.JSON))
			}
			if event.Seq == answer.Position.Seq && !event.RecordedAt.Equal(answer.Position.RecordedAt) {
				t.Errorf("%+v: recorded at %s, not %s", test.options, answer.Position.RecordedAt, event.RecordedAt)
			}
		}
		if answer.RunID != test.runID || answer.Status != test.status || answer.Position.Seq != test.position || !slices.Equal(answer.Running, []string{"r4"}) ||
			string(lines(answer.Events)) != strings.Join(want, "\n") {
			t.Errorf("%+v: %+v\n%s", test.options, answer, lines(answer.Events))
		}
	}
}

// appendRunByRun appends a stream with its own runs, as far as agui.append takes them, in batches of any size, and returns what it has appended.
func appendRunByRun(t *testing.T, store *pgagui.Store, thread string, random *rand.Rand, stream []json.RawMessage) (log []json.RawMessage) {
	t.Helper()
	isUsed := map[string]bool{"": true}
	for n := 0; len(stream) > 0; n++ {
		var events []json.RawMessage
		var started, ended json.RawMessage
		rest := stream
		for ; len(rest) > 0; rest = rest[1:] {
			switch eventType := compaction.EventType(rest[0]); {
			case eventType == "RUN_STARTED" && (started != nil || len(events) > 0):
			case eventType == "RUN_STARTED":
				started = rest[0]
				continue
			case eventType == "RUN_FINISHED" || eventType == "RUN_ERROR":
				ended = rest[0]
				continue
			default:
				if eventType != "" {
					events = append(events, rest[0])
				}
				continue
			}
			break
		}
		stream = rest
		var names struct{ RunID, ParentRunID any }
		_ = json.Unmarshal(started, &names)
		runID, _ := names.RunID.(string)
		if isUsed[runID] || names.ParentRunID != nil || strings.Contains(string(started), `\u`) {
			runID = fmt.Sprint("run number ", n)
			started = fmt.Appendf(nil, `{"type":"RUN_STARTED","threadId":"t","runId":%q}`, runID)
		}
		isUsed[runID] = true
		if ended == nil {
			ended = fmt.Appendf(nil, `{"type":"RUN_FINISHED","threadId":"t","runId":%q}`, runID)
		}
		events = append(append([]json.RawMessage{started}, events...), ended)
		log = append(log, events...)
		for len(events) > 0 {
			size := min(1+random.IntN(10), len(events))
			mustAppend(t, store, thread, runID, events[:size])
			events = events[size:]
		}
	}
	return log
}

// polled are the events behind a position.
func polled(t *testing.T, pool *pgxpool.Pool, thread string, after pgagui.Position) (events []json.RawMessage) {
	t.Helper()
	list := testdb.Ask[[]string](t, pool, `
		select coalesce(array_agg(event.payload::text order by poll.first_seq, event.position), '{}')
		from agui.poll(array[$1], array[$2::bigint], array[$3::timestamptz], max_rows => 100000) as poll
		cross join json_array_elements(poll.events) with ordinality as event (payload, position)
		where poll.problem is null`, thread, after.Seq, after.RecordedAt)
	return toMessages(list)
}

// run gives events a beginning and an end.
func run(runID string, events []json.RawMessage) []json.RawMessage {
	whole := []json.RawMessage{fmt.Appendf(nil, `{"type":"RUN_STARTED","threadId":"t","runId":%q}`, runID)}
	whole = append(whole, events...)
	return append(whole, json.RawMessage(`{"type":"RUN_FINISHED","threadId":"t","runId":"`+runID+`"}`))
}

func mustAppend(t *testing.T, store *pgagui.Store, thread, run string, events []json.RawMessage) {
	t.Helper()
	must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: run}, events, pgagui.AppendOptions{}))(t)
}
