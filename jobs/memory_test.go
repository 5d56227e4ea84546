package jobs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/memory"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// appendLarge appends a run of small batches and then makes large ones of those between its first and its last event: to append them would take
// long. array is a SQL expression for the JSON array of events.
func appendLarge(t *testing.T, pool *pgxpool.Pool, threadID, runID, parentID string, batches int, array string) {
	t.Helper()
	body := make([]string, batches)
	for i := range body {
		body[i] = `{"type":"CUSTOM"}`
	}
	appendInBatches(t, pgagui.New(pool, nil), threadID, runID, parentID, 1, body...)
	damage(t, pool, fmt.Sprintf(`
		update agui.batch
		set events = (%[1]s)::json, text_bytes = octet_length(%[1]s), n = json_array_length((%[1]s)::json)
		from agui.run
		where run.thread_key = agui.thread_key('', '%[2]s') and run.run_id = '%[3]s'
			and batch.thread_key = run.thread_key and batch.run_no = run.run_no
			and batch.events::text = '[{"type":"CUSTOM"}]'`, array, threadID, runID))
	// The seqs behind them follow. For a while they are negative, because no two may be equal.
	key := fmt.Sprintf(`agui.thread_key('', '%s')`, threadID)
	damage(t, pool, `
		update agui.batch
		set first_seq = -placed.new_seq
		from (
			select first_seq, 1 + sum(n) over (order by first_seq) - n as new_seq
			from agui.batch
			where thread_key = `+key+`
		) as placed
		where batch.thread_key = `+key+` and batch.first_seq = placed.first_seq`)
	damage(t, pool, `update agui.batch set first_seq = -first_seq where thread_key = `+key)
	damage(t, pool, `
		update agui.run
		set first_seq = placed.first_seq, last_seq = case when run.last_seq is not null then placed.last_seq end,
			end_seq = case when run.end_seq is not null then placed.last_seq end
		from (
			select run_no, min(first_seq) as first_seq, max(first_seq + n - 1) as last_seq
			from agui.batch
			where thread_key = `+key+`
			group by run_no
		) as placed
		where run.thread_key = `+key+` and run.run_no = placed.run_no`)
}

// text is a SQL expression for so many megabytes of hexadecimal digits.
func text(megabytes int) string {
	return fmt.Sprintf(`repeat((select string_agg(md5(i::text), '') from generate_series(1, 32768) as i), %d)`, megabytes)
}

// Threads whose batches are a large part of the memory that a process may have, more of them than it has workers.
var largeThreads = map[string]func(*testing.T, *pgxpool.Pool){
	"states": func(t *testing.T, pool *pgxpool.Pool) {
		for i := range 4 {
			appendLarge(t, pool, fmt.Sprint("t", i), "r", "", scaled(4, 2), `'[{"type":"STATE_SNAPSHOT","snapshot":{"a":"' || `+text(12)+` || '"}}]'`)
		}
	},
	"messages": func(t *testing.T, pool *pgxpool.Pool) {
		for i := range 4 {
			appendLarge(t, pool, fmt.Sprint("t", i), "r", "", 1, `'[{"type":"TEXT_MESSAGE_START","messageId":"m"},'
				|| '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"' || `+text(12)+` || '"},{"type":"TEXT_MESSAGE_END","messageId":"m"}]'`)
		}
	},
	"events without a meaning": func(t *testing.T, pool *pgxpool.Pool) {
		for i := range 4 {
			appendLarge(t, pool, fmt.Sprint("t", i), "r", "", scaled(8, 3), `'[{"type":"RAW","event":"' || `+text(12)+` || '"}]'`)
		}
	},
	"small events": func(t *testing.T, pool *pgxpool.Pool) {
		for i := range 4 {
			appendLarge(t, pool, fmt.Sprint("t", i), "r", "", scaled(3, 2), `'[{"type":"TEXT_MESSAGE_START","messageId":"m"}'
				|| repeat(',{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"some words "}', 150000) || ']'`)
		}
	},
	"runs that end in a page": func(t *testing.T, pool *pgxpool.Pool) {
		for i := range 2 {
			for run := range scaled(30, 16) {
				appendLarge(t, pool, fmt.Sprint("t", i), fmt.Sprint("r", run), "", 1, `'[{"type":"STATE_SNAPSHOT","snapshot":{"a":"' || `+text(2)+` || '"}}]'`)
			}
		}
	},
	// All of them have ended before the first one is continued from, so all of their folds are needed.
	"branches": func(t *testing.T, pool *pgxpool.Pool) {
		store := pgagui.New(pool, nil)
		for run := range 24 {
			appendLarge(t, pool, "t", fmt.Sprint("root", run), "", 1, `'[{"type":"STATE_SNAPSHOT","snapshot":{"a":"' || `+text(4)+` || '"}}]'`)
		}
		for run := range 24 {
			appendRun(t, store, "t", fmt.Sprint("child", run), fmt.Sprint("root", run), message("m", 3)...)
		}
	},
}

// A job stays within the memory that its process has, whatever it reads and however many workers it has.
func TestJobsStayWithinTheirMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes minutes")
	}
	if memory.Peak(os.Getpid()) == 0 {
		t.Skip("this system does not tell how much memory a process took")
	}
	// MB: GOMEMLIMIT, and what the process may take in all. verify also holds the snapshots that it compares with. On a busy machine the
	// garbage collector comes late.
	const limit = 100
	most := map[string]int{"compact-with-four": 145, "verify-with-four": 170, "repack": 128}
	for name, plant := range largeThreads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.New(t)
			pool := testdb.Connect(t, url)
			plant(t, pool)
			for _, job := range []string{"compact-with-four", "verify-with-four", "repack"} {
				if peak := peakOfJob(t, url, job, limit); peak > most[job] {
					t.Errorf("%s took %d MB, want %d at most", job, peak, most[job])
				} else {
					t.Logf("%s took %d MB", job, peak)
				}
			}
			if n := waitingRuns(t, pool); n > 0 {
				t.Errorf("%d runs wait", n)
			}
		})
	}
}

// peakOfJob is how many megabytes a process took that did a job with a memory limit.
func peakOfJob(t *testing.T, url, job string, limit int) (megabytes int) {
	t.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), jobToDo+"="+job, jobDatabase+"="+url, fmt.Sprintf("GOMEMLIMIT=%dMiB", limit))
	process.Stderr = os.Stderr
	output, err := process.Output()
	if err != nil {
		t.Fatalf("%s: %v", job, err)
	}
	_, peak, _ := strings.Cut(string(output), "peak ")
	if _, err := fmt.Sscan(peak, &megabytes); err != nil {
		t.Fatalf("%s: %v in %q", job, err, output)
	}
	return megabytes >> 20
}

// What a session of the server takes for a job is bounded by the largest batch, however many of them there are.
func TestJobsInSQLHoldOneLargeBatch(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	const batch, most = 4, 66 // MB, of which a session that has read its functions takes 13
	for name, array := range map[string]string{
		"states":                   `'[{"type":"STATE_SNAPSHOT","snapshot":{"a":"' || ` + text(batch) + ` || '"}}]'`,
		"events without a meaning": `'[{"type":"RAW","event":"' || ` + text(batch) + ` || '"}]'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.New(t)
			pool := testdb.Connect(t, url)
			appendLarge(t, pool, "t", "r", "", scaled(20, 10), array)
			for _, statement := range []string{
				`call agui.compact()`, `call agui.repack(older_than => '0')`, `select agui.verify('t')`, `select agui.rebuild_snapshots('t')`,
			} {
				connection := must.Have(pgx.Connect(t.Context(), url))(t)
				stop := memory.WatchSessions(func() []int { return []int{int(connection.PgConn().PID())} })
				if _, err := connection.Exec(t.Context(), statement); err != nil {
					t.Errorf("%s: %v", statement, err)
				}
				peak := stop() >> 20
				if peak > most {
					t.Errorf("%s took %d MB, want %d at most", statement, peak, most)
				}
				t.Logf("%s took %d MB", statement, peak)
				must.Report(t, connection.Close(context.Background()))
			}
		})
	}
}

// Runs that would take a multiple of the memory that a fold may take, most of them of a few kilobytes.
var runsOfMuchMemory = map[string][][]string{
	"a document copied into itself, a patch each, in two runs": {
		append([]string{stateSnapshot(`{"a":1}`)}, patchesOf(counted(20, `{"op":"copy","from":"","path":"/c%d"}`))...),
		patchesOf(counted(8, `{"op":"copy","from":"","path":"/d%d"}`)),
	},
	"a document copied into itself, in one patch": {{stateSnapshot(`{"a":1}`), stateDelta(counted(19, `{"op":"copy","from":"","path":"/c%d"}`)...)}},
	"numbers copied":        {append([]string{stateSnapshot(`{"a":[1,2,3,4,5,6,7,8,9]}`)}, patchesOf(counted(20, `{"op":"copy","from":"","path":"/c%d"}`))...)},
	"empty objects copied":  {append([]string{stateSnapshot(`[{},{},{}]`)}, patchesOf(repeated(20, `{"op":"copy","from":"","path":"/-"}`))...)},
	"activities copied":     {{activity(1, `{"a":1}`), activityDelta(1, counted(30, `{"op":"copy","from":"","path":"/c%d"}`)...), activityDelta(1, counted(18, `{"op":"copy","from":"","path":"/c%d"}`)...)}},
	"a large array patched": {{stateSnapshot(emptyObjects(2_000_000)), stateDelta(`{"op":"add","path":"/-","value":1}`)}},
	"a large array brought": {{stateSnapshot(`{}`), stateDelta(`{"op":"add","path":"/a","value":` + emptyObjects(2_000_000) + `}`)}},
	"a large activity":      {{activity(1, emptyObjects(2_000_000)), activityDelta(1, `{"op":"add","path":"/-","value":1}`), activityDelta(2, `{"op":"add","path":"/-","value":1}`)}},
	"many patches":          {append([]string{stateSnapshot(`{}`)}, repeated(50_000, stateDelta(`{"op":"add","path":"/a","value":1}`))...)},
}

func patchesOf(operations []string) (events []string) {
	for _, operation := range operations {
		events = append(events, stateDelta(operation))
	}
	return events
}

func emptyObjects(n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat("{},", n), ",") + "]"
}

// No session takes more than 512 MB for a run, whatever its patches do and whichever call folds it.
func TestPatchesStayWithinTheirMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes minutes")
	}
	for name, runs := range runsOfMuchMemory {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			most := int64(512) // MB
			if name == "many patches" {
				most /= 4 // as four times as many may take 512
			}
			url, pool := databaseHere(t)
			for i, events := range runs {
				array := `[{"type":"RUN_STARTED"},` + strings.Join(events, ",") + `]`
				testdb.Exec(t, pool, `select agui.append('t', $1, $2)`, fmt.Sprint("r", i), json.RawMessage(array))
				if i < len(runs)-1 {
					testdb.Exec(t, pool, `select agui.append('t', $1, '[{"type":"RUN_FINISHED"}]')`, fmt.Sprint("r", i))
				}
			}
			check := func(statement string) {
				t.Helper()
				if took := costOfStatement(t, url, statement, false); took.peak > most {
					t.Errorf("%s took %v, want %d MB at most", statement, took, most)
				} else {
					t.Logf("%s took %v", statement, took)
				}
			}
			check(`call agui.compact_running('0')`)
			testdb.Exec(t, pool, `select agui.append('t', $1, '[{"type":"RUN_FINISHED"}]')`, fmt.Sprint("r", len(runs)-1))
			testdb.Exec(t, pool, `delete from agui.snapshot`)
			for _, statement := range []string{
				`select agui.restore('t')`, `call agui.compact()`, `select agui.verify('t')`, `select agui.rebuild_snapshots('t')`,
				`call agui.repack(older_than => '0')`,
			} {
				check(statement)
			}
			if n := waitingRuns(t, pool); n > 0 {
				t.Errorf("%d runs wait", n)
			}
		})
	}
}

// Large calls of agui.append: so many bytes in one event or in many, with and without escapes.
var largeCalls = map[string]func(bytes int) []string{
	"one event":                oneOf("some words "),
	"one event of line breaks": oneOf(`some wor\n `),
	"one event of backslashes": oneOf(`some wo\\s `),
	"one event of escapes":     oneOf(`some\u00e9s `),
	"one event of emoji":       oneOf(`\ud83d\ude00`),
	"one event of lone halves": oneOf(`ab \ud83d `),
	"a type in the middle": func(size int) []string {
		return []string{`{"delta":"` + strings.Repeat("some words ", size/11) + `","type":"TEXT_MESSAGE_CONTENT","messageId":"m"}`}
	},
	"types inside": func(size int) []string {
		return []string{messagesSnapshot(repeated(size/100, `{"id":"a","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f"}}]}`)...)}
	},
	"a type inside, and emoji": func(size int) []string {
		return []string{stateSnapshot(`{"type":"a","b":"` + strings.Repeat(`\ud83d\ude00`, size/12) + `"}`)}
	},
	"a type inside, and lone halves": func(size int) []string {
		return []string{stateSnapshot(`{"type":"a","b":"` + strings.Repeat(`ab \ud83d `, size/10) + `"}`)}
	},
	"brackets in a text": func(size int) []string {
		return []string{stateSnapshot(`"` + strings.Repeat("[{some words ", size/13) + `"`)}
	},
	"an input": func(size int) []string {
		return []string{`{"type":"RUN_STARTED","input":{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"id":"a","role":"user","content":[{"type":"text","text":"some\nwords"}]},`, size/76), ",") + `]}}`}
	},
	"an input of emoji": func(size int) []string {
		return []string{`{"type":"RUN_STARTED","input":{"messages":[{"id":"a","role":"user","content":"` + strings.Repeat(`\ud83d\ude00`, size/12) + `"}]}}`}
	},
	"a result": func(size int) []string {
		return []string{`{"type":"RUN_FINISHED","result":"` + strings.Repeat("some words ", size/11) + `"}`}
	},
	"many events":                manyOf("some words "),
	"many events of backslashes": manyOf(`some wo\\s `),
	"many events of emoji":       manyOf(`\ud83d\ude00`),
}

func contentEvent(delta string) string {
	return `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"` + delta + `"}`
}

func oneOf(unit string) func(int) []string {
	return func(size int) []string { return []string{contentEvent(strings.Repeat(unit, size/len(unit)))} }
}

func manyOf(unit string) func(int) []string {
	event := contentEvent(unit)
	return func(size int) []string { return repeated(size/len(event), event) }
}

// A large call takes a session about six times its size: twice to receive it, twice to plan the statement of the client, and twice to read
// a large event of several. Some take more if their type is not evident. Twice the size takes twice the work.
func TestMemoryOfLargeCalls(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const session = 20          // MB that a session takes for itself
	size := scaled(18, 9) << 20 // bytes
	check := func(t *testing.T, factor int, once, twice cost) {
		t.Logf("%v, of twice the size %v", once, twice)
		// The C library may keep some texts. On a server that was busy before, sessions took one or two copies more, in
		// all cases alike.
		if most := session + int64((factor+2)*2*size)>>20; twice.peak > most {
			t.Errorf("%d MB took %v, want %d MB at most", 2*size>>20, twice, most)
		}
		if twice.cpu > 3*once.cpu && twice.cpu > 2*time.Second {
			t.Errorf("twice the size took %.1f times the work", float64(twice.cpu)/float64(once.cpu))
		}
	}
	factors := map[string]int{
		"types inside": 7, "an input": 7, // PostgreSQL 15 keeps the names of all members that it reads
		"a type inside, and lone halves": 9, // their escapes have to be hidden
	}
	for name, make := range largeCalls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := databaseHere(t)
			factor, isKnown := factors[name]
			if !isKnown {
				factor = 6
			}
			check(t, factor, costOfAppend(t, url, "t1", make(size)), costOfAppend(t, url, "t2", make(2*size)))
		})
	}
	t.Run("an input beside the events", func(t *testing.T) {
		t.Parallel()
		url, _ := databaseHere(t)
		begin := func(threadID string, size int) cost {
			return costOfStatement(t, url, `select agui.append($1, 'r', '[{"type":"RUN_STARTED"}]', input => $2)`, false, threadID, json.RawMessage(
				`{"messages":[{"id":"a","role":"user","content":"`+strings.Repeat(`some\\s [{ \ud83d\ude00`, size/23)+`"}]}`))
		}
		check(t, 6, begin("t1", size), begin("t2", 2*size))
	})
}

// largeEvents are runs with an event of so many bytes.
var largeEvents = map[string]func(size int) []string{
	"a text": func(size int) []string { return textMessage("m", strings.Repeat("some words ", size/11)) },
	"a text of escapes": func(size int) []string {
		return textMessage("m", strings.Repeat(`some words so\\me\n`+strings.Repeat("some words ", 12)+`\ud83d\ude00`, size/163))
	},
	"a state": func(size int) []string {
		return []string{stateSnapshot(`{"a":"` + strings.Repeat("some words ", size/11) + `"}`)}
	},
	"an activity": func(size int) []string {
		return []string{activity(1, `{"a":"`+strings.Repeat("some words ", size/11)+`"}`)}
	},
	"messages": func(size int) []string {
		return []string{messagesSnapshot(counted(size/1000, `{"id":"m%d","role":"user","content":"`+strings.Repeat("some words ", 86)+`"}`)...)}
	},
	"no meaning": func(size int) []string {
		return []string{`{"type":"RAW","event":"` + strings.Repeat("some words ", size/11) + `"}`}
	},
}

// What reads and jobs in SQL take for one large event.
func TestMemoryOfLargeEvents(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const session = 20           // MB that a session takes for itself and for its functions
	size := scaled(36, 18) << 20 // bytes
	most := session + int64(13*size)>>20
	for name, make := range largeEvents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := databaseHere(t)
			costOfAppend(t, url, "t", make(size))
			for _, statement := range []string{
				`select agui.restore('t')`, `call agui.compact()`, `select agui.restore('t')`, `select agui.verify('t')`,
				`select agui.rebuild_snapshots('t')`, `call agui.repack(older_than => '0')`,
			} {
				took := costOfStatement(t, url, statement, false)
				t.Logf("%s took %v", statement, took)
				if took.peak > most {
					t.Errorf("%s took %v, want %d MB at most", statement, took, most)
				}
			}
		})
	}
}
