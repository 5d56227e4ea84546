package jobs_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/memory"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// appendWithInput appends a whole run, with more events.
func appendWithInput(t *testing.T, pool *pgxpool.Pool, thread, run string, input []byte, more ...json.RawMessage) error {
	t.Helper()
	events := []json.RawMessage{
		json.RawMessage(`{"type":"RUN_STARTED"}`),
		json.RawMessage(fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"answer to %s","delta":"yes"}`, run)),
	}
	events = append(events, slices.DeleteFunc(more, func(event json.RawMessage) bool { return event == nil })...)
	_, err := pgagui.New(pool, nil).Append(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: run},
		append(events, json.RawMessage(`{"type":"RUN_FINISHED"}`)), pgagui.AppendOptions{AfterSeq: new(int64(0)), Input: input})
	return err
}

func inputOf(t *testing.T, pool *pgxpool.Pool, thread, run string) (text string, inParts bool, hash []byte) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `
		select given.input::text, stored.input is null, given.hash
		from agui.run
		join agui.input as given using (thread_key, run_no)
		join agui.run_input as stored using (thread_key, run_no)
		where run.thread_key = agui.thread_key('', $1) and run.run_id = $2`, thread, run).Scan(&text, &inParts, &hash)
	must.Do(t, err)
	return text, inParts, hash
}

// oddInput writes an input as few clients do: duplicate members, white space, escapes that PostgreSQL's functions refuse, huge numbers. It
// begins with messages of a history, and returns all of its own. A regular one is odd in its values only, so it can be stored in parts.
func oddInput(random *rand.Rand, history []string, isRegular bool) (input []byte, messages []string) {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	space := func() string {
		if random.IntN(8) == 0 && !isRegular {
			return pick(" ", "\n", "\t ", "  ")
		}
		return ""
	}
	word := func() string {
		return `"` + strings.Repeat(pick("word ", `\n`, `\u0000`, `\ud83d`, `\ud83d\ude00`, `\\u0000`, `\"`, `\/`, "é", "😀", "[", "}", `\\`), random.IntN(60)) + `"`
	}
	value := func() string {
		return pick(`1e999`, `-0.0`, `123456789012345678901234567890`, `null`, `[ ]`, `{"a":{"a":1,"a":2}}`, word(), word(), word())
	}
	list := func(open, close, comma string, n int, element func() string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = element()
		}
		return open + strings.Join(all, comma+space()) + close
	}
	comma, colon := ",", ":"
	if len(history)%2 == 1 && !isRegular { // as before, mostly
		comma, colon = ", ", ": "
	}
	key := func() string { return pick(`"a"`, `"b"`, `"\u0061"`, `"\u0000"`, `"é"`, `"\/"`, `"id"`) }
	message := func() string {
		return pick(value(), list("{", "}", comma, 3, func() string { return key() + colon + value() }),
			`{"id"`+colon+word()+comma+`"role"`+colon+`"user"`+comma+`"content"`+colon+word()+`}`)
	}
	messages = slices.Clone(history[random.IntN(len(history)+1)/2:])
	for range random.IntN(20) {
		messages = append(messages, message())
	}
	if random.IntN(4) > 0 && len(messages)%2 != len(history)%2 {
		messages = append(messages, message())
	}
	if isRegular {
		messages = append(messages, `"`+strings.Repeat("long ", 60)+`"`) // a short list stays as it is
	}
	member := func(name string) string {
		switch name {
		case "messages":
			if random.IntN(10) == 0 && !isRegular {
				return `"messages"` + colon + value()
			}
			at := 0
			space := space() // behind commas, if at all
			return `"messages"` + colon + list("[", "]", comma+space, len(messages), func() string { at++; return messages[at-1] })
		default:
			return `"` + name + `"` + colon + pick(value(), list("{", "}", comma, random.IntN(9), func() string { return key() + colon + value() }))
		}
	}
	names := []string{"messages", "state", "tools", "context", "forwardedProps", `st\u0061te`}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	if random.IntN(4) == 0 && !isRegular {
		names = append(names, names[random.IntN(len(names))])
	}
	at := 0
	text := list("{"+space(), space()+"}", comma, len(names), func() string { at++; return member(names[at-1]) })
	return []byte(strings.TrimSuffix(text, "}") + comma + `"padding"` + colon + `"` + strings.Repeat("x", 8192) + `"}`), messages
}

// Whatever the input is, it comes back byte for byte, and means the same to folds, whether they have its messages already or not.
func TestInputsInPartsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	for name, compact := range compactors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, whole := testdb.Pool(t), testdb.Pool(t) // whole is never compacted
			seed := *firstSeed
			random := rand.New(rand.NewPCG(seed, 0))
			type given struct{ thread, run string }
			inputs := map[given][]byte{
				{"plain", "1"}: []byte(`{"threadId":"t","messages":[{"id":"1","role":"user","content":"` + strings.Repeat("x", 9000) + `"},{"id":"1","role":"user","content":"z"}],"tools":[],"context":[],"state":{}}`),
				{"small", "1"}: []byte(`{"messages":[]}`),
			}
			removed := map[given]json.RawMessage{} // where an event removes messages
			for i := range 8 {
				var history []string
				kind := []string{"odd", "regular"}[i%2]
				for _, run := range []string{"1", "2", "3", "4"} {
					at := given{fmt.Sprint(kind, " ", i), run}
					inputs[at], history = oddInput(random, history, kind == "regular")
					if n := len(history); random.IntN(3) == 0 {
						removed[at] = json.RawMessage(`{"type":"MESSAGES_SNAPSHOT","messages":[` + strings.Join(history[n/3:n/2], ",") + `]}`)
					}
				}
			}
			restored := func(pool *pgxpool.Pool) (text string) {
				t.Helper()
				if err := pool.QueryRow(t.Context(), `
					select string_agg(restored::text, e'\n' order by thread_id, run_id)
					from agui.run join agui.thread using (thread_key), agui.restore(thread_id, run_id) as restored`).Scan(&text); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				return text
			}
			var want string
			// What the first runs mean is a snapshot when the others come.
			for _, runs := range []string{"12", "34"} {
				for _, at := range slices.SortedFunc(maps.Keys(inputs), func(a, b given) int { return cmp.Compare(a.thread+a.run, b.thread+b.run) }) {
					if !strings.Contains(runs, at.run) {
						continue
					}
					if !json.Valid(inputs[at]) {
						t.Fatalf("seed %d: not JSON: %s", seed, inputs[at])
					}
					for _, pool := range []*pgxpool.Pool{pool, whole} {
						if err := appendWithInput(t, pool, at.thread, at.run, inputs[at], removed[at]); err != nil {
							t.Fatalf("seed %d: %v", seed, err)
						}
					}
				}
				compact(t, pool)
				want = restored(whole)
				if restored(pool) != want {
					t.Errorf("seed %d: compacted, the inputs in parts mean something else", seed)
				}
			}
			split := 0
			for at, input := range inputs {
				text, inParts, hash := inputOf(t, pool, at.thread, at.run)
				if sum := sha256.Sum256(input); text != string(input) || !bytes.Equal(hash, sum[:]) {
					t.Errorf("seed %d: %v: the input\n%s\ncame back as\n%s", seed, at, input, text)
				}
				if inParts {
					split++
				}
				isRegular := at.thread == "plain" || strings.HasPrefix(at.thread, "regular")
				if inParts && at.thread == "small" || !inParts && isRegular {
					t.Errorf("%v: in parts: %t", at, inParts)
				}
				if err := appendWithInput(t, pool, at.thread, at.run, input, removed[at]); err != nil {
					t.Errorf("the call that began the run, repeated: %v", err)
				}
				if err := appendWithInput(t, pool, at.thread, at.run, append(slices.Clone(input), ' '), removed[at]); err == nil {
					t.Error("a repeated call with another input was not refused")
				}
			}
			t.Logf("%d of %d are in parts", split, len(inputs))
			if split < len(inputs)/2 {
				t.Errorf("only %d of %d inputs are in parts", split, len(inputs))
			}
			// Without snapshots, all is folded from the parts.
			testdb.Exec(t, pool, `delete from agui.snapshot; delete from agui.message_version; update agui.run set log_bytes = null`)
			if restored(pool) != want {
				t.Errorf("seed %d: the inputs in parts mean something else", seed)
			}
			compact(t, pool)
			if restored(pool) != want {
				t.Errorf("seed %d: compacted at once, the inputs in parts mean something else", seed)
			}
			if n := count(t, pool, `select count(*) from agui.thread cross join lateral agui.verify(thread_id) as found where found.severity = 'damage'`); n > 0 {
				t.Errorf("seed %d: agui.verify finds damage", seed)
			}
			if n := count(t, pool, `select count(*) from agui_internal.job_note`); n > 0 {
				t.Errorf("seed %d: %d inputs failed", seed, n)
			}
			testdb.Exec(t, pool, `select agui.erase(thread_id) from agui.thread`)
			if n := count(t, pool, `select count(*) from agui.input_part`) + count(t, pool, `select count(*) from agui.run_input`); n > 0 {
				t.Errorf("erased threads left %d rows", n)
			}
		})
	}
}

// An input that repeats messages of the one before it comes back as it was, wherever they stand, and whatever stands between them here and there.
func TestKnownMessagesComeBackInTheirPlace(t *testing.T) {
	t.Parallel()
	for name, compact := range compactors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			long := func(id string) string {
				return fmt.Sprintf(`{"id":"%s","role":"user","content":"%s"}`, id, strings.Repeat(id+" word ", 600))
			}
			a, b, c := long("a"), long("b"), long("c")
			for thread, inputs := range map[string][]string{
				"numbers":        {`[1,2,` + a + `]`, `[132,` + a + `]`},
				"fractions":      {`[1, 2, ` + a + `]`, `[1.52, ` + a + `]`},
				"another space":  {`[` + a + `, ` + b + `]`, `[` + a + `,` + "\n" + b + `]`, `[` + a + ` ,` + b + `, ` + c + `]`},
				"one, then more": {`[` + a + `]`, `[` + a + `, ` + b + `]`, `[` + a + `, ` + b + `, ` + c + `]`},
				"a space less":   {`[` + a + `, ` + b + `]`, `[` + a + `,` + b + `]`, `[` + a + `,` + b + `,` + c + `]`},
				// What follows the known messages stands before them, too.
				"no more, an empty list": {`[` + a + `,` + b + `]`, `{"state":{"todos":[]},"messages":[` + a + `,` + b + `]}`},
				"one more, twice":        {`[` + a + `]`, `{"forwardedProps":[` + c + `],"state":` + a + `,"messages":[` + a + `,` + c + `]}`},
				"listed elsewhere":       {`[` + a + `,` + b + `]`, `{"tools":[` + a + `],"forwardedProps":{"messages":[]},"messages": [` + a + `,` + b + `]}`},
				"repeated":               {`[` + a + `,` + b + `,` + a + `]`, `[` + a + `,` + a + `,` + b + `,` + a + `]`, `[` + a + `,` + b + `,` + b + `]`},
				"a window":               {`[` + a + `,` + b + `,` + c + `]`, `[` + c + `,` + a + `]`, `[` + a + `,7,` + b + `]`, `[7,` + b + `]`},
			} {
				for i, text := range inputs {
					input := []byte(text)
					if list := text; list[0] == '[' {
						input = []byte(`{"messages":` + list + `,"tools":[]}`)
					}
					run := fmt.Sprint(i)
					must.Do(t, appendWithInput(t, pool, thread, run, input))
					compact(t, pool)
					got, inParts, _ := inputOf(t, pool, thread, run)
					if got != string(input) {
						t.Errorf("%s: the input\n%.60s… came back as\n%.60s…", thread, input, got)
					}
					if isRegular := !slices.Contains([]string{"numbers", "fractions", "another space"}, thread); isRegular && !inParts {
						t.Errorf("%s: input %s stays whole", thread, run)
					}
				}
			}
		})
	}
}

// Messages that stand elsewhere in their input, too, as in forwardedProps, are taken once.
func TestCopiesOfMessagesInAnInputAreNoMessages(t *testing.T) {
	t.Parallel()
	for name, compact := range compactors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			list := `[{"role":"user","content":"` + strings.Repeat("word ", 1000) + `"},{"role":"user","content":"Why?"}]`
			input := `{"forwardedProps":{"messages":` + list + `},"messages":` + list + `}`
			must.Do(t, appendWithInput(t, pool, "t", "r", []byte(input)))
			compact(t, pool)
			if text, inParts, _ := inputOf(t, pool, "t", "r"); text != input || !inParts {
				t.Fatalf("in parts: %t; the input came back as\n%s", inParts, text)
			}
			// Folded again, from the parts.
			testdb.Exec(t, pool, `delete from agui.snapshot; delete from agui.message_version; update agui.run set log_bytes = null`)
			compact(t, pool)
			if n := count(t, pool, `select count(*) from agui.messages('t') where message ->> 'content' = 'Why?' or length(message ->> 'content') > 1000`); n != 2 {
				t.Errorf("%d messages, want 2", n)
			}
			if found, err := jobs.Verify(t.Context(), pool, jobs.VerifyOptions{}); err != nil || found.Problems > 0 {
				t.Errorf("verify: %+v, %v", found, err)
			}
		})
	}
}

// Messages that stay in the skeleton, as few short ones do, have the places that they have in an input that is whole.
func TestMessagesThatStayInTheSkeletonHavePlaces(t *testing.T) {
	t.Parallel()
	for name, compact := range compactors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			const hello, long = `{"id":"q","role":"user","content":"Hello"}`, `{"id":"q2","role":"user","content":"And?"}`
			tools := `"tools":[{"name":"search","description":"` + strings.Repeat("about ", 1000) + `"}]`
			for i, messages := range []string{`[` + hello + `]`, `[ ` + hello + ` , ` + long + ` ]`, `[` + hello + `],"messages":[` + hello + `,` + long + `]`} {
				must.Do(t, appendWithInput(t, pool, "t", fmt.Sprint(i), []byte(`{"messages":`+messages+`,`+tools+`}`)))
			}
			places := func() (text string) {
				t.Helper()
				if err := pool.QueryRow(t.Context(), `
					select string_agg(concat_ws(' ', last.message_id, last.run_id, last.first_seq, origin.run_id), ', ' order by last.position)
					from agui.last_messages('t') as last
					left join lateral agui.message_origin('t', last.message_id) as origin on true`).Scan(&text); err != nil {
					t.Fatal(err)
				}
				return text
			}
			before := places()
			compact(t, pool)
			if n := count(t, pool, `select count(*) from agui.run_input where sections @> '[{"kind":"tools"}]' and not sections @> '[{"kind":"message"}]'`); n != 3 {
				t.Fatalf("the messages of %d inputs stay in the skeleton, want 3", n)
			}
			if after := places(); after != before {
				t.Errorf("the places were\n%s\nand are\n%s", before, after)
			}
		})
	}
}

// turn returns the input of a turn of a conversation: its whole history, with tools and a state.
func turn(number int) []byte {
	var messages []string
	for i := range number {
		messages = append(messages,
			fmt.Sprintf(`{"id":"q%d","role":"user","content":"question %[1]d %s"}`, i, strings.Repeat(fmt.Sprint("word", i, " "), 20)),
			fmt.Sprintf(`{"id":"a%d","role":"assistant","content":"answer %[1]d","toolCalls":[{"id":"c%[1]d","type":"function","function":{"name":"search","arguments":"{}"}}]}`, i),
			fmt.Sprintf(`{"id":"t%d","role":"tool","toolCallId":"c%[1]d","content":"%s"}`, i, strings.Repeat(fmt.Sprint("row ", i*i, " "), 200)))
	}
	return fmt.Appendf(nil, `{"threadId":"t","runId":"r%d","state":{"turn":%[1]d,"plan":"%s"},"messages":[%s],"tools":[{"name":"search","description":"%s"}],"context":[],"forwardedProps":{}}`,
		number, strings.Repeat("plan ", 100), strings.Join(messages, ","), strings.Repeat("about ", 100))
}

// appendTurns appends runs with the inputs of as many turns.
func appendTurns(t *testing.T, pool *pgxpool.Pool, turns int) {
	t.Helper()
	for number := 1; number <= turns; number++ {
		must.Do(t, appendWithInput(t, pool, "t", fmt.Sprint("r", number), turn(number)))
	}
}

// checkTurns checks that the inputs of these runs come back as they were.
func checkTurns(t *testing.T, pool *pgxpool.Pool, turns int) {
	t.Helper()
	for number := 1; number <= turns; number++ {
		if text, _, _ := inputOf(t, pool, "t", fmt.Sprint("r", number)); text != string(turn(number)) {
			t.Errorf("turn %d is changed", number)
		}
	}
}

// A history that grows is stored once: what a turn adds is in proportion to its new messages, not to its history.
func TestInputsOfAGrowingHistory(t *testing.T) {
	t.Parallel()
	for name, compact := range compactors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			const turns = 60
			var text int
			for number := 1; number <= turns; number++ {
				input := turn(number)
				text += len(input)
				must.Do(t, appendWithInput(t, pool, "t", fmt.Sprint("r", number), input))
				before := count(t, pool, `select count(*) from agui.input_part`)
				compact(t, pool)
				if added := count(t, pool, `select count(*) from agui.input_part`) - before; number > 5 && added != 4 { // three messages, a member of the state
					t.Errorf("turn %d added %d parts", number, added)
				}
			}
			if n := count(t, pool, `
				select count(*) from agui.run_input cross join jsonb_to_recordset(sections) as section (kind text, part_nos int4range[])
				where kind = 'message' and cardinality(part_nos) > 1 and run_no > 5`); n > 0 {
				t.Errorf("the history of %d inputs is not one range", n)
			}
			if n := count(t, pool, `select max(pg_column_size(skeleton) + pg_column_size(sections)) from agui.run_input`); n > 1000 {
				t.Errorf("an input takes %d bytes beside its parts", n)
			}
			stored := count(t, pool, `select sum(pg_column_size(stored.*)) from agui.run_input as stored`) + count(t, pool, `select sum(pg_column_size(part.*)) from agui.input_part as part`)
			t.Logf("%d turns: %d bytes of inputs are %d bytes stored", turns, text, stored)
		})
	}
}

// A fold that knows the whole history of an input looks up each message once: sixteen times as many take sixteen times as long, not 256 times.
func TestKnownMessagesAreLookedUpInLinearTime(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	least := func(messages int) (taken time.Duration) {
		thread := fmt.Sprint(messages)
		history := make([]string, messages)
		for i := range history {
			history[i] = fmt.Sprintf(`{"id":"message %d","role":"user","content":"question %[1]d %s"}`, i, strings.Repeat("word ", 10))
		}
		input := fmt.Appendf(nil, `{"messages":[%s]}`, strings.Join(history, ","))
		must.Do(t, appendWithInput(t, pool, thread, "r", input))
		testdb.Exec(t, pool, `call agui_internal.split_inputs()`)
		connection := must.Have(pool.Acquire(t.Context()))(t)
		defer connection.Release()
		for range 5 {
			before := memory.Scheduled(int(connection.Conn().PgConn().PID()))
			var leftOut int
			if err := connection.QueryRow(t.Context(), `
				select left_out_bytes
				from agui_internal.new_input(agui.thread_key('', $1), 1, (select array_agg(message_id) from agui.input_part where thread_key = agui.thread_key('', $1)), null, null)`,
				thread).Scan(&leftOut); err != nil || leftOut < messages*100 {
				t.Fatal(leftOut, err)
			}
			if once := memory.Scheduled(int(connection.Conn().PgConn().PID())) - before; taken == 0 || once < taken {
				taken = once
			}
		}
		return taken
	}
	few, many := least(300), least(16*300)
	if many > 64*few {
		t.Errorf("300 known messages take %s, 4,800 take %s", few, many)
	}
}

// A store of which the inputs are all whole is converted in steps. A step that is interrupted has no effect.
func TestWholeInputsOfAnOldStoreAreSplit(t *testing.T) {
	t.Parallel()
	for name, compact := range compactors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			const turns = 20
			appendTurns(t, pool, turns)
			whole := `select count(*) from agui.run_input where input is not null`
			tx := must.Have(pool.Begin(t.Context()))(t)
			testdb.Exec(t, tx, `select agui_internal.split_thread_inputs(agui.thread_key('', 't'), array(select run_no from agui.run))`)
			must.Do(t, tx.Rollback(t.Context()))
			if n := count(t, pool, whole); n != turns || count(t, pool, `select count(*) from agui.input_part`) != 0 {
				t.Fatalf("after a rollback, %d inputs are whole", n)
			}
			// As a dump of an old store restores them.
			testdb.Exec(t, pool, `
				begin; select agui_internal.allow_log_change(true); update agui.run_input set hash = null, bytes = null, split_at = null; commit`)
			if err := appendWithInput(t, pool, "t", "r7", turn(7)); err != nil {
				t.Errorf("a repeated call: %v", err)
			}
			compact(t, pool)
			if n := count(t, pool, whole); n > 4 { // the first are small
				t.Errorf("%d inputs are whole", n)
			}
			checkTurns(t, pool, turns)
			if n := count(t, pool, `select count(*) from agui.run_input where split_at is null`); n > 0 {
				t.Errorf("%d inputs are in the queue", n)
			}
		})
	}
}

// A split that is killed in the middle has no effect, and what remains is its note. The next call does it.
func TestASplitThatIsKilledHasNoEffect(t *testing.T) {
	t.Parallel()
	for name, compact := range compactors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			const turns = 10
			appendTurns(t, pool, turns)
			testdb.Exec(t, pool, `
				create function agui.wait_in_part() returns trigger language plpgsql as 'begin perform pg_advisory_xact_lock(4711); return new; end';
				create trigger wait_in_part before insert on agui.input_part for each row when (new.part_no = 12) execute function agui.wait_in_part()`)
			holder := must.Have(pool.Begin(t.Context()))(t)
			testdb.Exec(t, holder, `select pg_advisory_xact_lock(4711)`)
			killed := make(chan error, 1)
			go func() {
				_, err := pool.Exec(t.Context(), `call agui_internal.split_inputs()`)
				killed <- err
			}()
			const waiting = `from pg_stat_activity where datname = current_database() and wait_event = 'advisory'`
			for count(t, pool, `select count(*) `+waiting) == 0 {
				select {
				case err := <-killed:
					t.Fatal("the split did not wait: ", err)
				case <-time.After(time.Millisecond):
				}
			}
			testdb.Exec(t, pool, `select pg_terminate_backend(pid, 60000) `+waiting)
			if err := <-killed; err == nil {
				t.Error("the split ended without an error")
			}
			must.Do(t, holder.Rollback(t.Context()))
			testdb.Exec(t, pool, `drop trigger wait_in_part on agui.input_part; drop function agui.wait_in_part()`)

			if parts, notes := count(t, pool, `select count(*) from agui.input_part`), count(t, pool, `select count(*) from agui_internal.job_note where job = 'split'`); parts != 0 || notes == 0 {
				t.Errorf("the split left %d parts and %d notes", parts, notes)
			}
			checkTurns(t, pool, turns)
			compact(t, pool)
			if waiting, notes := count(t, pool, `select count(*) from agui.run_input where split_at is null`), count(t, pool, `select count(*) from agui_internal.job_note`); waiting+notes != 0 {
				t.Errorf("the next call leaves %d inputs and %d notes", waiting, notes)
			}
			if count(t, pool, `select count(*) from agui.input_part`) == 0 {
				t.Error("the next call splits nothing")
			}
			checkTurns(t, pool, turns)
		})
	}
}

// Once vacuum has been there, a conversation that clients sent back with each turn takes at most twice the space of its parts.
func TestVacuumGivesBackWhatInputsInPartsTook(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	random := rand.New(rand.NewPCG(1, 2))
	var messages []string
	for turn := range 12 {
		image := make([]byte, 150_000)
		for i := range image {
			image[i] = "0123456789abcdef"[random.IntN(16)]
		}
		messages = append(messages, fmt.Sprintf(`{"id":"q%d","role":"user","content":[{"type":"image","source":{"type":"data","value":"%s","mimeType":"image/png"}}]}`, turn, image))
		run := fmt.Sprint("r", turn)
		input := fmt.Appendf(nil, `{"threadId":"t","runId":"%s","messages":[%s],"tools":[],"context":[],"state":{}}`, run, strings.Join(messages, ","))
		must.Do(t, appendWithInput(t, pool, "t", run, input, json.RawMessage(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"a`+run+`","delta":"a picture"}`)))
		messages = append(messages, `{"id":"a`+run+`","role":"assistant","content":"a picture"}`)
	}
	size := func() int64 {
		return count(t, pool, `select pg_total_relation_size('agui.run_input') + pg_total_relation_size('agui.input_part')`)
	}
	whole := size()
	compactors["Go"](t, pool)
	testdb.Exec(t, pool, `vacuum agui.run_input`)
	parts := count(t, pool, `select sum(pg_column_size(body))::bigint from agui.input_part`)
	if got := size(); got > 2*parts || whole < 4*parts {
		t.Errorf("%d KB in parts take %d KB, and took %d KB before", parts>>10, got>>10, whole>>10)
	}
}

// What clients send back with each turn is stored once: messages of snapshots point to the parts of inputs that have the same text, whichever
// of the two came first.
func TestAMessageIsStoredOnce(t *testing.T) {
	t.Parallel()
	for name, compact := range compactors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			said := strings.Repeat("said ", 200)
			question := `{"id":"q1","role":"user","content":[{"type":"image","source":{"type":"data","value":"` + strings.Repeat("iVBORw0K", 30_000) + `","mimeType":"image/png"}}]}`
			answer := func(run string) string {
				return fmt.Sprintf(`{"id":"a%s","role":"assistant","content":"%s"}`, run, said+run)
			}
			turn := func(run string, messages ...string) {
				t.Helper()
				input := fmt.Appendf(nil, `{"threadId":"t","runId":"%s","messages":[%s],"tools":[],"context":[],"state":{}}`, run, strings.Join(messages, ","))
				said := json.RawMessage(fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"a%s","delta":"%s"}`, run, said+run))
				must.Do(t, appendWithInput(t, pool, "t", run, input, said))
				compact(t, pool)
			}
			restored := func() (text string) {
				t.Helper()
				must.Do(t, pool.QueryRow(t.Context(), `select string_agg(message::text, e'\n') from agui.messages('t') as message`).Scan(&text))
				return text
			}
			check := func(when string, ownBodies int64, shared ...string) {
				t.Helper()
				for _, message := range shared {
					if n := count(t, pool, `select count(*) from agui.message_version as version join agui.message using (thread_key, message_no)
						where version.part_no is not null and message.body::text = '`+message+`'`); n != 1 {
						t.Errorf("%s: %d versions share the text of %.60s, want 1", when, n, message)
					}
				}
				if n := count(t, pool, `select count(*) from agui.message_version where octet_length(body::text) >= 100`); n != ownBodies {
					t.Errorf("%s: %d messages that are not short have texts of their own, want %d", when, n, ownBodies)
				}
				if n := count(t, pool, `select count(*) from agui.verify('t') where severity = 'damage'`); n > 0 {
					t.Errorf("%s: agui.verify finds damage", when)
				}
			}

			turn("1", question)
			check("the question came with the input", 1, question) // the answer is nowhere else yet
			another := `{"id":"q2","role":"user","content":"` + strings.Repeat("and? ", 20) + `"}`
			turn("2", question, answer("1"), another)
			check("the answer came back", 1, question, answer("1"), another)
			before := restored()
			testdb.Exec(t, pool, `select agui.rebuild_snapshots('t')`)
			check("rebuilt", 1, question, answer("1"), another)
			if restored() != before {
				t.Error("rebuilt, the conversation is another one")
			}
			if n := count(t, pool, `select count(*) from agui.input_part where octet_length(body::text) > 200000`); n != 1 {
				t.Errorf("the image is stored %d times", n)
			}
			testdb.Exec(t, pool, `select agui.erase('t')`)
			if n := count(t, pool, `select (select count(*) from agui.input_part) + (select count(*) from agui.message_version)`); n > 0 {
				t.Errorf("the erased thread left %d rows", n)
			}
		})
	}
}
