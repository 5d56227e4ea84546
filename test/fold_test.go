package test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
)

var (
	streamCount = flag.Int("streams", 160, "how many generated streams the reducers are compared on; tests that do more with each take fewer")
	firstSeed   = flag.Uint64("seed", 1, "seed of the first generated stream, and of all else that is random")
	keepFailing = flag.Bool("keep", false, "add streams that the reducers differ on, shrunk, to golden/found.json")
)

// kindsOfStreams are the generated streams that all reducers must agree on.
var kindsOfStreams = []struct {
	name    string
	options compactiontest.Options
	// clientReads says that the client folds such streams too, so that it can be the judge.
	clientReads bool
}{
	{"valid", compactiontest.Options{}, true},
	{"valid and long", compactiontest.Options{Events: 200}, true},
	{"valid in the proposals' spellings", compactiontest.Options{Proposals: true}, true},
	{"wild", compactiontest.Options{Wild: true}, true},
	{"wild in the proposals' spellings", compactiontest.Options{Wild: true, Proposals: true}, true},
	{"wild with odd JSON", compactiontest.Options{Wild: true, Unicode: true, Numbers: true}, false},
	{"wild and malformed", compactiontest.Options{Wild: true, Malformed: true, RefusedChunks: true, Proposals: true, Unicode: true}, false},
	{"wild, of the field", compactiontest.Options{Wild: true, Field: true}, false},
	{"breaking the protocol", compactiontest.Options{Broken: true}, true},
	{"valid with odd JSON", compactiontest.Options{Proposals: true, Unicode: true, Numbers: true}, false},
}

// isLeftOut reports whether a test that does much with each stream leaves a kind of streams out. With -short it takes a third of the
// kinds; the seed says which.
func isLeftOut(kind int) bool { return testing.Short() && uint64(kind)%3 != *firstSeed%3 }

// startOf is as much of a stream as a test takes that reads all runs of it often: with -short 100 events.
func startOf(stream []json.RawMessage) []json.RawMessage {
	if testing.Short() {
		stream = stream[:min(len(stream), 100)]
	}
	return stream
}

// streamsOfAKind is how many streams of each kind a test takes that does so many times as much with one as TestReducersAgree.
func streamsOfAKind(times int) int { return max(1, *streamCount/len(kindsOfStreams)/times) }

// The reducer in SQL and the one in Go make the same of every stream, and so does the official client of those that it reads.
// A stream that they differ on is shrunk to a few events before it is shown.
func TestReducersAgree(t *testing.T) {
	t.Parallel()
	judges := reducers{pool: testdb.Pool(t)}
	reader := startOracle(t)
	for i, kind := range kindsOfStreams {
		t.Run(kind.name, func(t *testing.T) {
			judges.client = nil
			if kind.clientReads {
				judges.client = reader
			}
			const atOnce = 100
			seed := *firstSeed
			last := seed + uint64(*streamCount/len(kindsOfStreams))
			for failures := 0; seed < last && failures < 3; seed += atOnce {
				streams := make([][]json.RawMessage, min(atOnce, last-seed))
				for n := range streams {
					streams[n] = compactiontest.Stream((seed+uint64(n))<<8+uint64(i), kind.options)
				}
				for n, difference := range judges.differences(t, streams) {
					if difference == "" {
						continue
					}
					failures++
					shrunk := shrink(streams[n], func(stream []json.RawMessage) bool {
						return judges.differences(t, [][]json.RawMessage{stream})[0] != ""
					})
					t.Errorf("seed %d: %s\nthe stream, shrunk to %d events:\n%s", seed+uint64(n),
						judges.differences(t, [][]json.RawMessage{shrunk})[0], len(shrunk), bytes.Join(rawBytes(shrunk), []byte("\n")))
					if *keepFailing {
						keepAsGoldenCase(t, fmt.Sprintf("found in a %s stream, seed %d", kind.name, seed+uint64(n)), shrunk)
					}
				}
			}
		})
	}
}

// reducers are the judges of what a stream means; client is nil where it is not asked.
type reducers struct {
	pool    *pgxpool.Pool
	reader  *pgxpool.Pool // what restores the threads, where it is not pool
	client  *oracle
	limits  *compaction.Limits // nil: the defaults; the database has them too
	threads int                // counts the threads made, for their names
}

// differences says for each stream what the reducers do not agree on, in a sentence; empty where they agree.
func (r *reducers) differences(t *testing.T, streams [][]json.RawMessage) []string {
	t.Helper()
	found := make([]string, len(streams))
	inSQL := r.foldInSQL(t, streams)
	var inClient []meaning
	if r.client != nil {
		inClient = r.client.fold(t, streams...)
	}
	for i, stream := range streams {
		located := compaction.New()
		located.Locate("r", 1)
		if r.limits != nil {
			located.SetLimits(*r.limits)
		}
		inGo := foldWith(t, located, stream)
		if difference := differences(inSQL[i], inGo); difference != "" {
			found[i] = "SQL against Go: " + difference
		} else if inClient != nil && inClient[i].Error == "" {
			if difference := differences(inGo, inClient[i]); difference != "" {
				found[i] = "Go against the client: " + difference
			}
		}
	}
	return found
}

// lastThread is the id of the thread made last.
func (r *reducers) lastThread() string { return fmt.Sprint("stream-", r.threads) }

func foldInGo(t *testing.T, stream []json.RawMessage) meaning {
	t.Helper()
	return foldWithin(t, stream, nil)
}

// foldWithin is foldInGo with limits; nil: the defaults.
func foldWithin(t *testing.T, stream []json.RawMessage, limits *compaction.Limits) meaning {
	t.Helper()
	fold := compaction.New()
	if limits != nil {
		fold.SetLimits(*limits)
	}
	return foldWith(t, fold, stream)
}

func foldWith(t *testing.T, fold *compaction.Fold, stream []json.RawMessage) meaning {
	t.Helper()
	for _, event := range stream {
		fold.Apply(event)
	}
	if err := fold.EndRun(); err != nil {
		return meaning{Error: err.Error()}
	}
	return meaningOf(t, fold)
}

func meaningOf(t *testing.T, fold *compaction.Fold) meaning {
	t.Helper()
	folded := meaning{State: fold.State()}
	for _, message := range fold.Messages() {
		folded.Messages = append(folded.Messages, message.JSON())
	}
	must.Do(t, json.Unmarshal(fold.Interrupts(), &folded.Interrupts))
	return folded
}

// foldInSQL puts each stream into the log as one run, past agui.append, which would refuse some, and restores it.
func (r *reducers) foldInSQL(t *testing.T, streams [][]json.RawMessage) []meaning {
	t.Helper()
	ctx := context.Background()
	var threads, batchThreads, batches []string
	var lengths, firstSeqs, counts []int
	for _, stream := range streams {
		r.threads++
		thread := r.lastThread()
		threads = append(threads, thread)
		lengths = append(lengths, len(stream))
		for first := 0; first < len(stream); {
			// Batches of many sizes, so that events stand at every place in one.
			n := min(1+(first*7+r.threads)%20, len(stream)-first)
			batchThreads = append(batchThreads, thread)
			firstSeqs = append(firstSeqs, first+1)
			counts = append(counts, n)
			batches = append(batches, string(compactiontest.Batch(stream[first:first+n])))
			first += n
		}
	}
	testdb.Exec(t, r.pool, `
		insert into agui.thread (thread_key, scope, thread_id)
		select agui.thread_key('', id), '', id from unnest($1::text[]) as id`, threads)
	testdb.Exec(t, r.pool, `
		insert into agui.run (thread_key, run_no, run_id, status, first_seq, last_seq, started_at, ended_at)
		select agui.thread_key('', id), 1, 'r', 'finished', 1, n, now(), now()
		from unnest($1::text[], $2::int[]) as run (id, n)`, threads, lengths)
	testdb.Exec(t, r.pool, `
		insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
		select agui.thread_key('', id), first_seq, now(), n, 1, events::json
		from unnest($1::text[], $2::int[], $3::int[], $4::text[]) as batch (id, first_seq, n, events)`,
		batchThreads, firstSeqs, counts, batches)
	reader := cmp.Or(r.reader, r.pool)
	rows, err := reader.Query(ctx, `
		select agui.restore(id) from unnest($1::text[]) with ordinality as thread (id, position) order by position`, threads)
	must.Do(t, err)
	defer rows.Close()
	var folded []meaning
	for rows.Next() {
		var document json.RawMessage
		var restored meaning
		must.Do(t, rows.Scan(&document))
		must.Do(t, json.Unmarshal(document, &restored))
		folded = append(folded, restored)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("restore one of %s to %s: %v", threads[0], threads[len(threads)-1], err)
	}
	return folded
}

// shrink removes events from a failing stream as long as it fails, in stretches first, then one by one.
func shrink[E any](stream []E, fails func([]E) bool) []E {
	for stretch := len(stream) / 2; stretch > 0; stretch /= 2 {
		for at := 0; at+stretch <= len(stream) && len(stream) > stretch; {
			shorter := append(append([]E{}, stream[:at]...), stream[at+stretch:]...)
			if fails(shorter) {
				stream = shorter
			} else {
				at += stretch
			}
		}
	}
	return stream
}

func rawBytes(stream []json.RawMessage) [][]byte {
	lines := make([][]byte, len(stream))
	for i, event := range stream {
		lines[i] = event
	}
	return lines
}

var foundMutex sync.Mutex

// keepAsGoldenCase adds a case to golden/found.json; make oracle-update then lets the client say what is wanted.
func keepAsGoldenCase(t *testing.T, name string, stream []json.RawMessage) {
	t.Helper()
	foundMutex.Lock()
	defer foundMutex.Unlock()
	const file = "golden/found.json"
	var cases []json.RawMessage
	if text, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(text, &cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	added := fmt.Appendf(nil, `{"name":%q,"rule":"The reducers agree with the client.","events":%s}`, name, compactiontest.Batch(stream))
	// Joined as text, so that every case stays as it is spelled.
	text := append([]byte("[\n"), bytes.Join(append(rawBytes(cases), added), []byte(",\n"))...)
	testfile.Write(t, file, append(text, "\n]\n"...))
	t.Logf("kept in test/%s: run make oracle-update, and look at what the client says", file)
}

// Short lists of messages take a path of their own in SQL where there are many messages.
func TestShortListsOfManyMessages(t *testing.T) {
	t.Parallel()
	judges := reducers{pool: testdb.Pool(t), client: startOracle(t)}
	var streams [][]json.RawMessage
	for seed := range uint64(streamsOfAKind(1)) {
		random := rand.New(rand.NewPCG(*firstSeed, seed))
		pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
		id := func() string {
			if seed%5 == 4 && random.IntN(10) == 0 {
				return pick(`"\u006d1"`, `"a\"1"`, `"a\\1"`)
			}
			return fmt.Sprintf(`"%s%d"`, pick("m", "a", "r"), random.IntN(40))
		}
		message := func(id string) string {
			role := pick("user", "assistant")
			if random.IntN(12) == 0 {
				role = pick("reasoning", "activity")
			}
			switch {
			case random.IntN(12) == 0:
				return fmt.Sprintf(`{"role":%q,"content":"no id"}`, role)
			case role == "activity":
				return fmt.Sprintf(`{"id":%s,"role":"activity","activityType":"x","content":{"n":%d}}`, id, random.IntN(3))
			default:
				return fmt.Sprintf(`{"id":%s,"role":%q,"content":"%d"}`, id, role, random.IntN(3))
			}
		}
		var stream []json.RawMessage
		add := func(format string, arguments ...any) {
			stream = append(stream, json.RawMessage(fmt.Sprintf(format, arguments...)))
		}
		for i := range 40 {
			if random.IntN(3) == 0 {
				add(`{"type":"REASONING_MESSAGE_START","messageId":"r%d","role":"reasoning"}`, i)
			} else {
				add(`{"type":"ACTIVITY_SNAPSHOT","messageId":"a%d","activityType":"x","content":{"n":1}}`, i)
			}
		}
		for range random.IntN(3) {
			add(`{"type":"TOOL_CALL_RESULT","messageId":%s,"toolCallId":"c","content":"x"}`, id())
		}
		for range 12 {
			listed := make([]string, random.IntN(4))
			for i := range listed {
				listed[i] = message(id())
			}
			switch random.IntN(4) {
			case 0:
				add(`{"type":"TEXT_MESSAGE_CONTENT","messageId":%s,"delta":"x"}`, id())
			case 1:
				add(`{"type":"TEXT_MESSAGE_START","messageId":%s,"role":"user"}`, id())
			case 2:
				add(`{"type":"ACTIVITY_DELTA","messageId":%s,"activityType":"y","patch":[{"op":"add","path":"/y","value":1.50}]}`, id())
			}
			add(`{"type":"MESSAGES_SNAPSHOT","messages":[%s]%s}`, strings.Join(listed, ","), pick("", "", "", `,"metadata":{"@ag-ui/client":{"authoritativeActivityTypes":["x"]}}`))
		}
		streams = append(streams, stream)
	}
	judges.mustAgree(t, streams)
}

// Of several calls with one id the first counts, also once messages that have it gave way to activities.
func TestCallsOfMessagesThatGiveWay(t *testing.T) {
	t.Parallel()
	judges := reducers{pool: testdb.Pool(t), client: startOracle(t)}
	var streams [][]json.RawMessage
	for seed := range uint64(streamsOfAKind(1)) {
		random := rand.New(rand.NewPCG(*firstSeed, seed))
		var stream []json.RawMessage
		add := func(format string, arguments ...any) {
			stream = append(stream, json.RawMessage(fmt.Sprintf(format, arguments...)))
		}
		message := func(i int) string {
			calls := make([]string, random.IntN(4))
			for c := range calls {
				calls[c] = fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":"f","arguments":"%d"}}`, random.IntN(3), i)
			}
			return fmt.Sprintf(`{"id":"m%d","role":%q,"toolCalls":[%s]}`, i, []string{"user", "assistant"}[random.IntN(2)], strings.Join(calls, ","))
		}
		listed := make([]string, 8)
		for i := range listed {
			listed[i] = message(i)
		}
		add(`{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"messages":[%s]}}`, strings.Join(listed, ","))
		for n := range 25 {
			switch call := fmt.Sprintf("c%d", random.IntN(3)); random.IntN(6) {
			case 0:
				add(`{"type":"ACTIVITY_SNAPSHOT","messageId":"m%d","activityType":"x","content":{}}`, random.IntN(8))
			case 1:
				add(`{"type":"TOOL_CALL_RESULT","messageId":"r%d","toolCallId":%q,"content":"x"}`, n, call)
			case 2:
				add(`{"type":"REASONING_ENCRYPTED_VALUE","subtype":"tool-call","entityId":%q,"encryptedValue":"v%d"}`, call, n)
			case 3:
				add(`{"type":"TOOL_CALL_ARGS","toolCallId":%q,"delta":"+%d"}`, call, n)
			case 4:
				add(`{"type":"TOOL_CALL_START","toolCallId":%q,"toolCallName":"g%d","parentMessageId":"m%d"}`, call, n, random.IntN(10))
			case 5:
				add(`{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"messages":[%s]}}`, message(10+n))
			}
		}
		streams = append(streams, stream)
	}
	judges.mustAgree(t, streams)
}

// mustAgree fails the test where the reducers make different things of a stream, which it shrinks.
func (r *reducers) mustAgree(t *testing.T, streams [][]json.RawMessage) {
	t.Helper()
	for i, difference := range r.differences(t, streams) {
		if difference != "" {
			shrunk := shrink(streams[i], func(stream []json.RawMessage) bool {
				return r.differences(t, [][]json.RawMessage{stream})[0] != ""
			})
			t.Fatalf("stream %d: %s\nshrunk to %d events:\n%s", i, r.differences(t, [][]json.RawMessage{shrunk})[0], len(shrunk), bytes.Join(rawBytes(shrunk), []byte("\n")))
		}
	}
}
