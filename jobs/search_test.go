package jobs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// What search finds is what a plain reading of all that was said finds: on all branches, in inputs, pieces, snapshots and results, each
// text once in its thread, for words, phrases, alternatives and exclusions, in one scope or all, page by page.
func TestSearchFindsWhatAScanFinds(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	must.Do(t, store.EnableSearch(t.Context(), "simple"))
	random := rand.New(rand.NewPCG(4, 5))
	words := []string{"refund", "order", "late", "tomorrow", "naïve", "日本", "invoice", "thanks"}
	sentence := func() string {
		var said []string
		for range 2 + random.IntN(6) {
			said = append(said, words[random.IntN(len(words))])
		}
		return strings.Join(said, " ")
	}
	type text struct{ scope, thread, id, role, text string }
	said := map[text]bool{}
	for scope := range 3 {
		in := store.InScope(fmt.Sprint("s", scope))
		for thread := range 6 {
			threadID := fmt.Sprint("t", thread)
			var history []map[string]any
			note := func(id, role, content string) {
				said[text{fmt.Sprint("s", scope), threadID, id, role, content}] = true
			}
			for run := range 5 {
				// A run that begins with the first one again leaves a branch behind, with what its user said.
				parent, runID := fmt.Sprint("r", run-1), fmt.Sprint("r", run)
				if run >= 2 && random.IntN(3) == 0 {
					parent, history = "r0", history[:2]
				}
				userID, answerID, resultID, listedID := fmt.Sprint("u", run), fmt.Sprint("a", run), fmt.Sprint("x", run), fmt.Sprint("l", run)
				user := map[string]any{"id": userID, "role": "user", "content": sentence()}
				if random.IntN(3) == 0 {
					parts := []string{sentence(), sentence()}
					user["content"] = []any{map[string]any{"type": "text", "text": parts[0]}, map[string]any{"type": "image"}, map[string]any{"type": "text", "text": parts[1]}}
					note(userID, "user", parts[0]+"\n"+parts[1])
				} else {
					note(userID, "user", user["content"].(string))
				}
				history = append(history, user)
				messages := append([]map[string]any{{"id": "sys", "role": "system", "content": "refund everything"}}, history...)
				input := must.Have(json.Marshal(map[string]any{"threadId": threadID, "runId": runID, "messages": messages}))(t)
				answer, result := sentence(), sentence()
				note(answerID, "assistant", answer)
				note(resultID, "tool", result)
				events := []any{map[string]any{"type": "RUN_STARTED"}}
				options := pgagui.AppendOptions{Input: input}
				if random.IntN(2) == 0 { // in the event
					events, options.Input = []any{map[string]any{"type": "RUN_STARTED", "input": json.RawMessage(input)}}, nil
				}
				if run > 0 {
					options.ParentRunID = parent
				}
				half := len(answer) / 2
				for half > 0 && answer[half]&0xc0 == 0x80 {
					half--
				}
				switch random.IntN(2) {
				case 0:
					events = append(events, map[string]any{"type": "TEXT_MESSAGE_START", "messageId": answerID, "role": "assistant"},
						map[string]any{"type": "TEXT_MESSAGE_CONTENT", "messageId": answerID, "delta": answer[:half]},
						map[string]any{"type": "CUSTOM", "name": "refund", "value": "refund"},
						map[string]any{"type": "TEXT_MESSAGE_CONTENT", "messageId": answerID, "delta": answer[half:]}, map[string]any{"type": "TEXT_MESSAGE_END", "messageId": answerID})
				default:
					events = append(events, map[string]any{"type": "TEXT_MESSAGE_CHUNK", "messageId": answerID, "delta": answer[:half]},
						map[string]any{"type": "TEXT_MESSAGE_CHUNK", "delta": answer[half:]})
				}
				events = append(events, map[string]any{"type": "TOOL_CALL_RESULT", "messageId": resultID, "toolCallId": "c", "content": result})
				history = append(history, map[string]any{"id": answerID, "role": "assistant", "content": answer})
				if random.IntN(3) == 0 {
					listed := sentence()
					note(listedID, "assistant", listed)
					delete(said, text{fmt.Sprint("s", scope), threadID, resultID, "tool", result}) // the list lacks it, so no client shows it
					events = append(events, map[string]any{"type": "MESSAGES_SNAPSHOT", "messages": append(slices.Clone(history), map[string]any{"id": listedID, "role": "assistant", "content": listed})})
				}
				events = append(events, map[string]any{"type": "RUN_FINISHED"})
				var raw []json.RawMessage
				for _, event := range events {
					encoded := must.Have(json.Marshal(event))(t)
					raw = append(raw, encoded)
				}
				must.Have(in.Append(t.Context(), pgagui.RunRef{ThreadID: threadID, RunID: runID}, raw, options))(t)
			}
			if random.IntN(2) == 0 { // with inputs in parts
				testdb.Exec(t, pool, `call agui.compact()`)
			}
		}
	}
	projectAll(t, pool, projections["Go"])
	if n := count(t, pool, `select count(*) from agui.message_text`); n != int64(len(said)) {
		t.Errorf("%d texts are stored, %d were said", n, len(said))
	}
	for query, matches := range map[string]func(string) bool{
		"refund":            func(s string) bool { return strings.Contains(s, "refund") },
		"REFUND":            func(s string) bool { return strings.Contains(s, "refund") },
		"naïve":             func(s string) bool { return strings.Contains(s, "naïve") },
		"日本 order":          func(s string) bool { return strings.Contains(s, "日本") && strings.Contains(s, "order") },
		"late or invoice":   func(s string) bool { return strings.Contains(s, "late") || strings.Contains(s, "invoice") },
		"order -refund":     func(s string) bool { return strings.Contains(s, "order") && !strings.Contains(s, "refund") },
		`"refund tomorrow"`: func(s string) bool { return strings.Contains(strings.ReplaceAll(s, "\n", " "), "refund tomorrow") },
		"everything":        func(string) bool { return false },
		"scope":             func(string) bool { return false },
		"...":               func(string) bool { return false },
	} {
		for _, scope := range []string{"", "s1"} {
			for _, role := range []string{"", "user", "tool"} {
				want := map[text]bool{}
				for was := range said {
					if matches(was.text) && (scope == "" || was.scope == scope) && (role == "" || was.role == role) {
						want[was] = true
					}
				}
				options := pgagui.SearchOptions{Role: role, AllScopes: scope == "", Limit: 7}
				lastRank := float32(100)
				for {
					page := must.Have(store.InScope(scope).Search(t.Context(), query, options))(t)
					for _, found := range page.Messages {
						var shown strings.Builder
						marked := false
						for _, part := range found.Snippet {
							shown.WriteString(part.Text)
							marked = marked || part.IsMatch
						}
						var is text
						for was := range want {
							if was.scope == found.Scope && was.thread == found.ThreadID && was.id == found.MessageID && was.role == found.Role {
								is = was
							}
						}
						if is.id == "" || !marked || found.Rank > lastRank || !strings.Contains(is.text, strings.SplitN(shown.String(), " … ", 2)[0]) {
							t.Errorf("%q in %q by %q: found %+v", query, scope, role, found)
						}
						delete(want, is)
						lastRank = found.Rank
					}
					if options.Cursor = page.Cursor; page.Cursor == "" {
						break
					}
				}
				for missed := range want {
					t.Errorf("%q in %q by %q: missed %+v", query, scope, role, missed)
				}
			}
		}
	}
	for i := range 6 {
		if found := damageOf(t, store.InScope("s0"), fmt.Sprint("t", i)); len(found) > 0 {
			t.Errorf("verify finds %q", found)
		}
	}
}

// A text comes with the run that brought it, in the language that was chosen, and goes with its thread.
func TestSearchIsTurnedOnAndOff(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	if _, err := store.Search(t.Context(), "refund", pgagui.SearchOptions{}); !errors.Is(err, pgagui.ErrSearchOff) {
		t.Errorf("while it is off: %v", err)
	}
	say := func(thread, run string, events ...string) {
		raw := make([]json.RawMessage, len(events))
		for i, event := range events {
			raw[i] = json.RawMessage(event)
		}
		must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: run}, raw, pgagui.AppendOptions{}))(t)
	}
	say("t", "r1", `{"type":"RUN_STARTED","input":{"messages":[{"id":"u","role":"user","content":"I want two refunds."}]}}`, `{"type":"RUN_FINISHED"}`)
	found := func(query string) (threads []string) {
		page := must.Have(store.Search(t.Context(), query, pgagui.SearchOptions{}))(t)
		for _, message := range page.Messages {
			threads = append(threads, message.ThreadID+"/"+message.RunID+"/"+message.MessageID)
		}
		return threads
	}
	for language, want := range map[string]string{"simple": "", "english": "t/r1/u", "pg_catalog.english": "t/r1/u"} {
		must.Do(t, store.EnableSearch(t.Context(), language))
		mustProject(t, pool, projections["SQL"]) // what there is, before what changes
		if got := strings.Join(found("refund"), " "); got != want {
			t.Errorf("in %s: %q, want %q", language, got, want)
		}
	}
	must.Do(t, store.EnableSearch(t.Context(), "english"))
	mustProject(t, pool, projections["SQL"])
	// A change of the run: its texts are read again.
	last := int64(2)
	if _, err := store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r1"}, []json.RawMessage{json.RawMessage(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"late","delta":"The refund is late."}`)},
		pgagui.AppendOptions{AfterSeq: &last}); err != nil {
		t.Fatal(err)
	}
	projectAll(t, pool, projections["SQL"])
	if got := found("refund"); len(got) != 2 {
		t.Errorf("after a late message: %q", got)
	}
	// Words that are too long, controls and marks in the text are no problem.
	long := strings.Repeat("x", 5000)
	say("odd", "r", `{"type":"RUN_STARTED"}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"`+long+` \u0001scope:1 \u0002refund\u0003 \u0000 \ud800 end"}`, `{"type":"RUN_FINISHED"}`)
	projectAll(t, pool, projections["SQL"])
	if got := found(`"end"`); !slices.Equal(got, []string{"odd/r/m"}) {
		t.Errorf("behind odd characters: %q", got)
	}
	if _, err := store.Search(t.Context(), "x", pgagui.SearchOptions{Cursor: "tomorrow"}); !errors.Is(err, pgagui.ErrInvalidArgument) {
		t.Errorf("a wrong cursor: %v", err)
	}
	if page, err := store.Search(t.Context(), "refund", pgagui.SearchOptions{Since: time.Now().Add(time.Hour)}); err != nil || len(page.Messages) != 0 {
		t.Errorf("since later: %+v, %v", page, err)
	}

	if found := damageOf(t, store, "t"); len(found) > 0 {
		t.Errorf("verify finds %q", found)
	}
	for _, damage := range []string{`update agui.message_text set text = 'forged' where thread_key = agui.thread_key('', 't') and message_id = 'u'`, `delete from agui.message_text where message_id = 'late'`} {
		testdb.Exec(t, pool, damage)
		if found := damageOf(t, store, "t"); len(found) != 1 || !strings.Contains(found[0], "texts") {
			t.Errorf("after %s verify finds %q", damage, found)
		}
		must.Have(jobs.Project(t.Context(), pool, jobs.ProjectOptions{Rebuild: true}))(t)
		if found := damageOf(t, store, "t"); len(found) > 0 {
			t.Errorf("after a rebuild verify finds %q", found)
		}
	}

	testdb.Exec(t, pool, `select agui.erase('t')`)
	if n := count(t, pool, `select count(*) from agui.message_text where thread_key = agui.thread_key('', 't')`); n != 0 || slices.Contains(found("refund"), "t/r1/u") {
		t.Errorf("%d texts of an erased thread", n)
	}
	if err := store.EnableSearch(t.Context(), "klingon"); !errors.Is(err, pgagui.ErrInvalidArgument) {
		t.Errorf("an unknown language: %v", err)
	}
	for _, want := range []bool{true, false} {
		if was, err := store.DisableSearch(t.Context()); err != nil || was != want {
			t.Errorf("turned off: %t, %v", was, err)
		}
	}
	if n := count(t, pool, `select count(*) from agui.message_text`); n != 0 {
		t.Errorf("%d texts are left", n)
	}
}

// A text that several runs have is that of the first of them, in whatever order they end and are projected.
// Of more messages than are ranked, the newest are, on all pages.
func TestSearchRanksTheNewestMatches(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	must.Do(t, store.EnableSearch(t.Context(), "simple"))
	for i := range 6 {
		id := fmt.Sprint("m", i)
		appendRun(t, store, "t"+id, "r", "", fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"%s","role":"assistant","delta":"%s"}`, id, strings.Repeat("refund ", 6-i)))
	}
	must.Have(jobs.Project(t.Context(), pool, jobs.ProjectOptions{}))(t)
	find := func() (ids []string, searchedTo time.Time) {
		t.Helper()
		options := pgagui.SearchOptions{Limit: 2}
		for {
			page := must.Have(store.Search(t.Context(), "refund", options))(t)
			for _, message := range page.Messages {
				ids = append(ids, message.MessageID)
				searchedTo = page.SearchedTo
			}
			if options.Cursor = page.Cursor; options.Cursor == "" {
				return ids, searchedTo
			}
		}
	}
	all, searchedTo := find()
	if len(all) != 6 || !searchedTo.IsZero() {
		t.Errorf("all: %q, searched to %v", all, searchedTo)
	}
	for most, first := range map[int]string{6: "", 4: "m2"} {
		rankAtMost(t, pool, most)
		got, searchedTo := find()
		if want := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return id < first }); !slices.Equal(got, want) {
			t.Errorf("of at most %d: %q, want %q", most, got, want)
		}
		var oldest time.Time
		if first != "" {
			oldest = testdb.Ask[time.Time](t, pool, `select said_at from agui.message_text where message_id = $1`, first)
		}
		if !searchedTo.Equal(oldest) {
			t.Errorf("of at most %d: searched to %v, want %v", most, searchedTo, oldest)
		}
	}
}

// rankAtMost lets agui.search rank so many messages.
func rankAtMost(t *testing.T, pool *pgxpool.Pool, most int) {
	t.Helper()
	definition := testdb.Ask[string](t, pool, `select pg_get_functiondef(oid) from pg_proc where pronamespace = 'agui'::regnamespace and proname = 'search'`)
	changed := regexp.MustCompile(`most_ranked constant int := \d+`).ReplaceAllString(definition, fmt.Sprint("most_ranked constant int := ", most))
	if changed == definition {
		t.Fatal("agui.search has no most_ranked")
	}
	testdb.Exec(t, pool, changed)
}

func TestATextIsThatOfTheFirstRun(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `select agui.enable_search()`)
	const listed = `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"user","content":"refund"}]}`
	shown := func() string {
		t.Helper()
		projectAll(t, pool, projections["Go"])
		return testdb.Ask[string](t, pool, `select string_agg(concat_ws(' ', run_id, seq), ', ') from agui.search('refund')`)
	}
	testdb.Exec(t, pool, `select agui.append('t', 'r0', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`)
	for _, run := range []string{"slow", "middle", "fast"} {
		testdb.Exec(t, pool, `select agui.append('t', $1, '[{"type":"RUN_STARTED"},`+listed+`]', parent_run_id => 'r0', parallel => true)`, run)
	}
	for _, ended := range []struct{ run, want string }{{"fast", "fast 8"}, {"slow", "slow 4"}, {"middle", "slow 4"}} {
		testdb.Exec(t, pool, `select agui.append('t', $1, '[{"type":"RUN_FINISHED"}]')`, ended.run)
		if got := shown(); got != ended.want {
			t.Errorf("after the end of %s the text is that of %q, want %q", ended.run, got, ended.want)
		}
	}
	// What the first run does not have any more is that of the next one, not of the one that is projected with it.
	testdb.Exec(t, pool, `select agui_internal.project_runs(array_agg(thread_key), array_agg(run_no)) from agui.run where run_id in ('slow', 'fast')`)
	if got := shown(); got != "slow 4" {
		t.Errorf("projected together, the text is that of %q", got)
	}
	testdb.Exec(t, pool, `update agui.message_text set run_no = 1, seq = 2`)
	testdb.Exec(t, pool, `select agui_internal.project_runs(array_agg(thread_key), array_agg(run_no)) from agui.run where run_id in ('r0', 'fast')`)
	if got := shown(); got != "slow 4" {
		t.Errorf("after a run lost the text, it is that of %q", got)
	}
}
