package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/memory"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// costlyRun is a run made to take much for what it is: its events, of a size.
type costlyRun struct {
	size    int // of the smaller one of two, at the scale 4; twice as much may take twice the work
	events  func(t *testing.T, pool *pgxpool.Pool, size int) []string
	refused bool // it is over a limit, and stays in quarantine
}

var costlyRuns = map[string]costlyRun{
	"an array copied into itself": {size: 1, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		copies := stateDelta(repeated(30, `{"op":"copy","from":"","path":"/-"}`)...)
		return append([]string{stateSnapshot(zeros(1000))}, repeated(size, copies)...)
	}},
	"copies of members in activities": {size: 4, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		doublings := counted(25, `{"op":"copy","from":"","path":"/c%d"}`)
		var events []string
		for i := range size {
			events = append(events, activity(i, `{"s":"`+strings.Repeat("x", 200)+`"}`), activityDelta(i, doublings...))
		}
		return events
	}},
	"inserts at the front of an array": {size: 2000, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		return []string{stateSnapshot(zeros(400_000)), stateDelta(repeated(size, `{"op":"add","path":"/0","value":1}`)...)}
	}},
	"patches of a deep document": {size: 1000, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		events := []string{stateSnapshot(nested(900))}
		for i := range size {
			depth := 400 + i*17%500
			events = append(events, stateDelta(fmt.Sprintf(`{"op":"add","path":"%s/b%d","value":%d}`, strings.Repeat("/a", depth), i%3, i)))
		}
		return events
	}},
	"one patch of a deep document": {size: 1000, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		var operations []string
		for i := range size {
			operations = append(operations, fmt.Sprintf(`{"op":"add","path":"%s/b%d","value":%d}`, strings.Repeat("/a", 400+i*17%500), i%3, i))
		}
		return []string{stateSnapshot(nested(900)), stateDelta(operations...)}
	}},
	"patches far down beside a large text": {size: 60, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		deep := strings.Repeat(`{"a":`, 900) + `{"s":"` + strings.Repeat("x", 1<<20) + `"}` + strings.Repeat(`}`, 900)
		return append([]string{stateSnapshot(deep)}, repeated(size, stateDelta(`{"op":"add","path":"`+strings.Repeat("/a", 900)+`/b","value":1}`))...)
	}},
	"tests of a large text": {size: 2000, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		events := []string{stateSnapshot(`{"s":"` + strings.Repeat("x", 1<<20) + `"}`)}
		for range size {
			events = append(events, stateDelta(`{"op":"test","path":"/s","value":"x"}`), stateDelta(`{"op":"add","path":"/s/b","value":1}`))
		}
		return events
	}},
	"depth that doubles": {size: 200, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		doubling := stateDelta(`{"op":"copy","from":"","path":"`+strings.Repeat("/a", 300)+`"}`, `{"op":"copy","from":"","path":"`+strings.Repeat("/a", 600)+`"}`)
		return append([]string{stateSnapshot(nested(300))}, repeated(size, doubling)...)
	}},
	"empty lists of messages beside many activities": {size: 500, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		return append(activities(20_000), repeated(size, messagesSnapshot())...)
	}},
	"short lists of messages beside many activities": {size: 150, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		events := activities(10_000)
		for i := range size {
			events = append(events, messagesSnapshot(fmt.Sprintf(`{"id":"m%d","role":"user","content":"Hello"}`, i)))
		}
		return events
	}},
	"lists of messages between changes of many activities": {size: 60, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		events := activities(4_000)
		for i := range size {
			events = append(events, textMessage(fmt.Sprint("m", i), "Hello")...)
			events = append(events, activityDelta(i, `{"op":"add","path":"/x","value":1}`), messagesSnapshot())
		}
		return events
	}},
	"encrypted values of a message with a large head": {size: 2000, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		events := []string{messagesSnapshot(`{"id":"m","role":"assistant","content":"x","large":"` + strings.Repeat("x", 4<<20) + `"}`)}
		return append(events, counted(size, `{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"m","encryptedValue":"v%d"}`)...)
	}},
	"results of two tool calls in turn": {size: 4000, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		var events []string
		for _, call := range []string{"a", "b"} {
			events = append(events, fmt.Sprintf(`{"type":"TOOL_CALL_START","toolCallId":%q,"toolCallName":"f","parentMessageId":"m%s"}`, call, call),
				fmt.Sprintf(`{"type":"TOOL_CALL_END","toolCallId":%q}`, call))
		}
		for i := range size {
			events = append(events, fmt.Sprintf(`{"type":"TOOL_CALL_RESULT","messageId":"r%d","toolCallId":%q,"content":"%d"}`, i, "ab"[i%2:i%2+1], i))
		}
		return events
	}},
	"calls of a message that gives way": {size: 4000, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		calls := strings.Join(counted(size, `{"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}`), ",")
		return []string{
			messagesSnapshot(`{"id":"a1","role":"user","toolCalls":[`+calls+`]}`, `{"id":"m","role":"assistant","toolCalls":[`+calls+`]}`),
			`{"type":"TOOL_CALL_START","toolCallId":"c0","toolCallName":"g"}`,
			activity(1, `{}`),
		}
	}},
	"too many lanes": {size: 4000, refused: true, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		return counted(size, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m%[1]d","subagentRunId":"s%[1]d","delta":"x"}`)
	}},
	"many lanes": {size: 4000, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		var events []string
		for i := range size {
			events = append(events, fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m%[1]d","subagentRunId":"s%[1]d","delta":"x"}`, i%250))
		}
		return events
	}},
	"ids that collide in hashtext": {size: 2000, events: func(t *testing.T, pool *pgxpool.Pool, size int) []string {
		ids := testdb.List[string](t, pool, `
			select '"m' || i || '"' from generate_series(1, $1 * 4500) as i where hashtext('"m' || i || '"') & 4095 = 7 limit $1`, size)
		var events []string
		for _, id := range ids {
			events = append(events, `{"type":"TEXT_MESSAGE_START","messageId":`+id+`}`)
		}
		for _, id := range ids {
			events = append(events, `{"type":"TEXT_MESSAGE_CONTENT","messageId":`+id+`,"delta":"x"}`)
		}
		return events
	}},
	"tiny copies beside a large array": {size: 2000, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		return []string{stateSnapshot(`{"s":1,"large":` + zeros(200_000) + `}`), stateDelta(counted(size, `{"op":"copy","from":"/s","path":"/c%d"}`)...)}
	}},
	"tiny patches beside a large array": {size: 500, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		events := []string{stateSnapshot(`{"s":1,"large":` + zeros(200_000) + `}`)}
		for i := range size {
			events = append(events, stateDelta(fmt.Sprintf(`{"op":"copy","from":"/s","path":"/c%d"}`, i)))
		}
		return events
	}},
	"deep arrays": {size: 2000, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		deep := strings.Repeat("[", 990) + strings.Repeat("]", 990)
		return []string{stateSnapshot("[" + strings.TrimSuffix(strings.Repeat(deep+",", size), ",") + "]")}
	}},
	"one large event": {size: 10 << 20, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		return textMessage("m", strings.Repeat("some words ", size/11))
	}},
	"one batch of many events": {size: 10 << 20, events: func(_ *testing.T, _ *pgxpool.Pool, size int) []string {
		return repeated(size/80, `{"type":"CUSTOM","name":"n","value":"some words that have nothing to say to a fold"}`)
	}},
}

func repeated(n int, text string) []string { return slices.Repeat([]string{text}, n) }

func counted(n int, format string) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf(format, i))
	}
	return texts
}

func zeros(n int) string  { return "[" + strings.TrimSuffix(strings.Repeat("0,", n), ",") + "]" }
func nested(n int) string { return strings.Repeat(`{"a":`, n) + `{}` + strings.Repeat(`}`, n) }

func stateSnapshot(state string) string { return `{"type":"STATE_SNAPSHOT","snapshot":` + state + `}` }

func stateDelta(operations ...string) string {
	return `{"type":"STATE_DELTA","delta":[` + strings.Join(operations, ",") + `]}`
}

func activity(i int, content string) string {
	return fmt.Sprintf(`{"type":"ACTIVITY_SNAPSHOT","messageId":"a%d","activityType":"x","content":%s}`, i, content)
}

func activityDelta(i int, operations ...string) string {
	return fmt.Sprintf(`{"type":"ACTIVITY_DELTA","messageId":"a%d","activityType":"x","patch":[%s]}`, i, strings.Join(operations, ","))
}

func activities(n int) (events []string) {
	for i := range n {
		events = append(events, activity(i, `{"n":1}`))
	}
	return events
}

func messagesSnapshot(messages ...string) string {
	return `{"type":"MESSAGES_SNAPSHOT","messages":[` + strings.Join(messages, ",") + `]}`
}

func textMessage(id, content string) []string {
	return []string{
		`{"type":"TEXT_MESSAGE_START","messageId":"` + id + `"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"` + id + `","delta":"` + content + `"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"` + id + `"}`,
	}
}

// cost is what a process took for a piece of work.
type cost struct {
	cpu  time.Duration
	peak int64 // MB
}

func (c cost) String() string {
	return fmt.Sprintf("%v and %d MB", c.cpu.Round(time.Millisecond), c.peak)
}

// No run takes more than its size and the limits allow: neither to append nor to compact, in SQL and in Go. Twice the size takes twice the
// work, as the processes' own time says.
func TestCostlyRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes minutes")
	}
	if memory.Peak(os.Getpid()) == 0 {
		t.Skip("this system does not tell what a process took")
	}
	const (
		mostMemory = 512 // MB
		mostRatio  = 2.6
		noise      = 700 * time.Millisecond
		attempts   = 3 // at a piece of work that took long: a busy machine only adds
	)
	for name, run := range costlyRuns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, pool := databaseHere(t)
			size := scaled(run.size, 1)
			events := [2][]string{run.events(t, pool, size), run.events(t, pool, 2*size)}
			threads := 0
			thread := func() string { return fmt.Sprint("t", threads) }
			restored := func() string {
				t.Helper()
				if n := waitingRuns(t, pool); run.refused != (n > 0) {
					t.Errorf("%d runs wait", n)
				}
				if run.refused {
					return ""
				}
				var digest string
				must.Report(t, pool.QueryRow(t.Context(), `select md5(agui.restore($1)::text)`, thread()).Scan(&digest))
				return digest
			}
			// measure appends the run of one of the sizes in place of the one before, and compacts it both ways.
			measure := func(which int) map[string]cost {
				testdb.Exec(t, pool, `select agui.erase(thread_id) from agui.thread`)
				threads++
				costs := map[string]cost{"append": costOfAppend(t, url, thread(), events[which])}
				costs["compaction in SQL"] = costOfStatement(t, url, `call agui.compact()`, run.refused)
				inSQL := restored()
				testdb.Exec(t, pool, `delete from agui.snapshot`)
				testdb.Exec(t, pool, `delete from agui.message_version`)
				testdb.Exec(t, pool, `delete from agui_internal.job_note`)
				testdb.Exec(t, pool, `update agui.run set log_bytes = null, n = null`)
				costs["compaction in Go"] = costOfJob(t, url, "compact-alone", run.refused)
				if restored() != inSQL {
					t.Error("SQL and Go make different snapshots")
				}
				return costs
			}
			var costs [2]map[string]cost
			tooLong := func(what string) bool {
				once, twice := costs[0][what].cpu, costs[1][what].cpu
				return float64(twice) > mostRatio*float64(once) && twice > noise
			}
			whats := []string{"append", "compaction in SQL", "compaction in Go"}
			for range attempts {
				for which := range costs {
					measured := measure(which)
					for what, before := range costs[which] {
						measured[what] = cost{min(measured[what].cpu, before.cpu), max(measured[what].peak, before.peak)}
					}
					costs[which] = measured
				}
				if !slices.ContainsFunc(whats, tooLong) {
					break
				}
			}
			for _, what := range whats {
				once, twice := costs[0][what], costs[1][what]
				t.Logf("%s: %v, of twice the size %v", what, once, twice)
				if twice.peak > mostMemory {
					t.Errorf("%s took %v, want %d MB at most", what, twice, mostMemory)
				}
				if tooLong(what) {
					t.Errorf("%s of twice the size took %.1f times the work", what, float64(twice.cpu)/float64(once.cpu))
				}
			}
		})
	}
}

// costOfAppend appends a run, in one call. Events may begin with its RUN_STARTED.
func costOfAppend(t *testing.T, url, threadID string, events []string) cost {
	t.Helper()
	array := strings.Join(events, ",") + `,{"type":"RUN_FINISHED"}]`
	if !strings.HasPrefix(array, `{"type":"RUN_STARTED"`) {
		array = `{"type":"RUN_STARTED"},` + array
	}
	array = "[" + array
	return costOfStatement(t, url, `select agui.append($1, 'r', $2)`, false, threadID, json.RawMessage(array))
}

// costOfStatement is what a session of its own takes for a statement.
func costOfStatement(t *testing.T, url, statement string, fails bool, arguments ...any) cost {
	t.Helper()
	connection := must.Have(pgx.Connect(t.Context(), url))(t)
	defer connection.Close(context.Background())
	pid := int(connection.PgConn().PID())
	before := memory.CPU(pid)
	stop := memory.WatchSessions(func() []int { return []int{pid} })
	if _, err := connection.Exec(t.Context(), statement, arguments...); err != nil && !fails {
		t.Errorf("%s: %v", statement, err)
	}
	return cost{memory.CPU(pid) - before, stop() >> 20}
}

// costOfJob is what a process takes that does a job.
func costOfJob(t *testing.T, url, job string, fails bool) cost {
	t.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), jobToDo+"="+job, jobDatabase+"="+url)
	output, err := process.CombinedOutput()
	if err != nil && !fails {
		t.Fatalf("%s: %v: %s", job, err, output)
	}
	_, text, _ := strings.Cut(string(output), "peak ")
	var peak int64
	if _, err := fmt.Sscan(text, &peak); err != nil {
		t.Fatalf("%s: %v in %q", job, err, output)
	}
	return cost{process.ProcessState.UserTime() + process.ProcessState.SystemTime(), peak >> 20}
}

// databaseHere makes a database whose sessions memory.CPU can look at, and a pool of it. If the server runs on another machine, it skips
// the test.
func databaseHere(t *testing.T) (url string, pool *pgxpool.Pool) {
	t.Helper()
	url = testdb.New(t)
	pool = testdb.Connect(t, url)
	connection := must.Have(pool.Acquire(t.Context()))(t)
	defer connection.Release()
	if memory.CPU(int(connection.Conn().PgConn().PID())) < 0 {
		t.Skip("the server runs on another machine, or this system does not tell what a process took")
	}
	return url, pool
}

// A fold in SQL ends soon after its statement was cancelled, whatever it is at, and the next call makes it.
func TestFoldsEndWhenTheyAreCancelled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"lists of messages between changes of many activities", "copies of members in activities"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := costlyRuns[name]
			url, pool := databaseHere(t)
			costOfAppend(t, url, "t", run.events(t, pool, scaled(run.size, run.size/2)))

			connection, err := pgx.Connect(t.Context(), url)
			must.Do(t, err)
			defer connection.Close(context.Background())
			testdb.Exec(t, connection, `set statement_timeout = '50ms'`)
			before := memory.CPU(int(connection.PgConn().PID()))
			_, err = connection.Exec(t.Context(), `call agui.compact()`)
			cancelled := memory.CPU(int(connection.PgConn().PID())) - before
			var pgErr *pgconn.PgError
			if !errors.As(err, &pgErr) || pgErr.Code != "57014" {
				t.Fatalf("compaction within 50 ms: %v", err)
			}

			whole := costOfStatement(t, url, `call agui.compact()`, false)
			if n := waitingRuns(t, pool); n > 0 {
				t.Errorf("%d runs wait", n)
			}
			if cancelled > whole.cpu/2 {
				t.Errorf("the cancelled fold took %v, the whole one %v", cancelled, whole)
			}
		})
	}
}
