package test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/devpg/cluster"
	"github.com/pgagui/pgagui/internal/legacysession"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/sql/schema"
)

// serverLog is what a server prints.
type serverLog struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (l *serverLog) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(text)
}

func (l *serverLog) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// secret is in the payloads of calls, nowhere else.
const secret = "s3cret"

// A refused call is in the server's log, with all that the error says. What people and agents said to each other must not be.
func TestRefusedCallsPutNoPayloadIntoTheServersLog(t *testing.T) {
	t.Parallel()
	log := &serverLog{}
	server, err := cluster.Start(t.Context(), cluster.Options{Log: log, Settings: map[string]string{
		"fsync": "off", "log_error_verbosity": "verbose", "log_min_messages": "notice",
	}})
	must.Do(t, err)
	t.Cleanup(func() {
		must.Report(t, server.Stop())
	})
	address := server.URL("postgres")
	must.Do(t, schema.Up(t.Context(), address))
	pool := testdb.Connect(t, address)

	started, finished := `{"type":"RUN_STARTED"}`, `{"type":"RUN_FINISHED"}`
	said := `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"` + secret + `"}`
	const appends, saves = `select agui.append($1, $2, $3)`, `select agui.save_session_state($1, $2, $3, expected_version => $4::int)`
	for _, step := range []struct {
		statement string
		arguments []any
		fails     bool
	}{
		{appends, []any{"t", "r", `[` + started + `,` + said + `,` + finished + `]`}, false},
		{appends, []any{"t", "r", `[` + said + `]`}, true},
		{appends, []any{"t", "unknown", `[` + said + `]`}, true},
		{appends, []any{"t", "r2", `["` + secret + `"]`}, true},
		{appends, []any{"t", "r2", `"` + secret + `"`}, true},
		{appends, []any{"t", "r2", `{"` + secret + `":1}`}, true},
		{appends, []any{"t", "r2", `[{"` + secret + `":"` + secret + `"}]`}, true},
		{appends, []any{"t", "r2", `[` + started + `,{"type":{"` + secret + `":1}}]`}, true},
		{appends, []any{"t", "r2", `[` + started + `,{"type":"` + strings.Repeat(secret, 200) + `"}]`}, false},
		{appends, []any{"t", "r3", `[{"type":"RUN_STARTED","parentRunId":{"x":"` + secret + `"},"runId":["` + secret + `"]}]`}, true},
		{appends, []any{"t", "r3", `[` + started + `,` + strings.Repeat(`{"type":"X","`+secret+`":`, 2000) + `1` + strings.Repeat(`}`, 2000) + `]`}, true},
		{`select agui.append($1, $2, $3, 0)`, []any{"t", "r", `[` + started + `,{"type":"CUSTOM","value":"` + secret + `"}]`}, true},
		{`select agui.append($1, $2, $3, input => $4)`, []any{"t", "r4", `[` + started + `]`, `["` + secret + `"]`}, true},
		{`select agui.append($1, $2, $3, 0, input => $4)`, []any{"t", "r", `[` + started + `]`, `{"a":"` + secret + `"}`}, true},
		{`select agui.append($1, $2, $3, strict => true)`, []any{"t", "r5", `[{"type":"RUN_STARTED","threadId":"u","input":"` + secret + `"}]`}, true},
		{`select agui.append_many($1, $2, $3::text[]::json[])`, []any{[]string{"t"}, []string{"r6"}, []string{`{"` + secret + `":1}`}}, false},
		{`select agui.import_events($1, $2, $3)`, []any{"i", "r", `[{"type":"RUN_STARTED","timestamp":"` + secret + `"},{"type":"X","timestamp":1e400,"x":"` + secret + `"}]`}, false},
		{`select agui.json_patch($1, $2)`, []any{`{"` + secret + `":1}`, `[{"op":"` + secret + `","path":"/` + secret + `"}]`}, true},
		{`select agui.json_patch($1, $2)`, []any{`{"` + secret + `":1}`, `[{"op":"test","path":"/a","value":"` + secret + `"}]`}, true},
		{`select agui.json_patch($1, $2)`, []any{`{"` + secret + `":1}`, `[{"op":"remove","path":"/x/` + secret + `"}]`}, true},
		{`select agui.json_patch($1, $2)`, []any{`{"` + secret + `":1}`, `{"` + secret + `":1}`}, true},
		{`select agui.json_patch_agg($1)`, []any{`"` + secret + `"`}, false},
		{`select agui.compact_events($1)`, []any{`["` + secret + `"]`}, true},
		{`select agui.compact_events($1, $2)`, []any{`[` + said + `]`, "nothing"}, true},
		{saves, []any{"t", "k", `{"a":"` + secret + `"}`, 0}, false},
		{saves, []any{"t", "k", `{"a":"` + secret + `"}`, 0}, true},
		{saves, []any{"t", nil, `{"a":"` + secret + `"}`, 0}, true},
		{saves, []any{nil, "k", `{"a":"` + secret + `"}`, 0}, true},
		{saves, []any{"t", "", `{"a":"` + secret + `"}`, 0}, true},
		{saves, []any{"t", "k2", `{"a":"` + secret + `"}`, nil}, false},
		{`select agui.save_session($1)`, []any{`{"threadId":"t","state":"` + secret + `"}`}, true},
		{`select agui.save_session($1)`, []any{`{"threadId":["` + secret + `"],"state":{}}`}, true},
		{`select agui.save_session($1)`, []any{`{"threadId":"t","state":{"k":"` + secret + `"}}`}, false},
		{`select agui.save_session($1)`, []any{`{"threadId":"t","versions":{"k":"` + secret + `"},"state":{"k":1}}`}, true},
		{`select agui.save_session($1)`, []any{`"` + secret + `"`}, true},
		{`select agui.save_sessions($1)`, []any{`{"` + secret + `":1}`}, true},
		{`select agui.save_checkpoint($1, $2, $3)`, []any{"t", "c", `{"a":"` + secret + `"}`}, false},
		{`select agui.save_checkpoint($1, $2, $3)`, []any{"t", "c", `{"a":"` + secret + `!"}`}, true},
		{`select agui.save_checkpoint($1, $2, $3)`, []any{"t", nil, `{"a":"` + secret + `"}`}, true},
		{`select agui.save_checkpoint($1, $2, $3, $4)`, []any{"t", "d", `{"a":"` + secret + `"}`, "nosuch"}, true},
		{`select agui.set_thread($1, metadata => $2)`, []any{"t", `["` + secret + `"]`}, true},
		{`select agui.set_thread($1, metadata => $2)`, []any{"t", `{"` + secret + `":"` + strings.Repeat(secret, 20000) + `"}`}, true},
		{`select agui.set_thread($1, title => $2)`, []any{"unknown", secret}, true},
		{`select agui.set_thread($1, title => $2)`, []any{"t", strings.Repeat(secret, 2000)}, true},
		{`select agui.session_runs($1, $2)`, []any{"t", `[{"type":"human","content":"` + secret + `"}]`}, true},
		{`select agui.session_runs($1, $2)`, []any{"t", `[{"type":"user","content":"` + secret + `","created_at":"` + secret + `"}]`}, false},
		{`select agui.session_runs($1, $2)`, []any{"t", `{"` + secret + `":1}`}, true},
		{`insert into agui.session_key values (agui.thread_key('', 't'), null, 1)`, nil, true},
	} {
		if _, err := pool.Exec(t.Context(), step.statement, step.arguments...); (err != nil) != step.fails {
			t.Errorf("%s %.200v: %v", step.statement, step.arguments, err)
		}
	}

	// What PostgreSQL cannot read as JSON it quotes; Go finds out before.
	store := pgagui.New(pool, nil)
	unreadable := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED","a":"` + secret + `" x}`)}
	invalid := json.RawMessage(`{"a":"` + secret + `"`)
	for name, call := range map[string]func() error{
		"append": func() error {
			_, err := store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "g"}, unreadable, pgagui.AppendOptions{})
			return err
		},
		"import": func() error {
			_, err := store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "g"}, unreadable, pgagui.AppendOptions{TimesFromEvents: true})
			return err
		},
		"input": func() error {
			_, err := store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "g"}, []json.RawMessage{json.RawMessage(started)}, pgagui.AppendOptions{Input: invalid})
			return err
		},
		"session state": func() error {
			_, err := store.Sessions().Save(t.Context(), pgagui.SessionKey{ThreadID: "t", Key: "g"}, invalid, pgagui.SaveOptions{})
			return err
		},
		"session": func() error { _, err := store.Sessions().SaveAll(t.Context(), invalid); return err },
		"sessions": func() error {
			_, err := store.Sessions().SaveMany(t.Context(), []json.RawMessage{invalid})
			return err
		},
		"checkpoint": func() error {
			_, err := store.Checkpoints().Save(t.Context(), "t", pgagui.Checkpoint{ID: "g", JSON: invalid})
			return err
		},
		"thread": func() error {
			_, err := store.SetThread(t.Context(), "t", pgagui.ThreadChanges{Metadata: invalid})
			return err
		},
		"a character that jsonb does not hold": func() error {
			_, err := store.SetThread(t.Context(), "t", pgagui.ThreadChanges{Metadata: json.RawMessage(`{"a":"` + secret + `\u0000"}`)})
			return err
		},
		"half a character": func() error {
			_, err := store.SetThread(t.Context(), "t", pgagui.ThreadChanges{Metadata: json.RawMessage(`{"a":"` + secret + `\ud83d"}`)})
			return err
		},
		"a list of threads": func() error {
			_, err := store.Threads(t.Context(), pgagui.ThreadsOptions{Metadata: invalid})
			return err
		},
		"messages": func() error {
			_, err := legacysession.Append(t.Context(), pool, legacysession.Session{ThreadID: "t", RunPrefix: "g-", Messages: []json.RawMessage{invalid}})
			return err
		},
	} {
		if err := call(); err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "0x") {
			t.Errorf("%s: the error quotes the payload: %v", name, err)
		}
	}

	// A damaged log fails jobs, with warnings.
	for _, statement := range []string{
		`set session_replication_role = replica; update agui.batch set events = '[{"type":"STATE_DELTA","delta":"` + secret + `"},3]', n = 7;
			update agui.run set n = null, log_bytes = null, repacked_at = null; reset session_replication_role`,
	} {
		testdb.Exec(t, pool, statement)
	}
	for _, statement := range []string{`call agui.compact()`, `call agui.repack(older_than => '0')`, `select agui.verify('t')`, `select agui.restore('t')`, `call agui.reap()`} {
		_, _ = pool.Exec(t.Context(), statement)
	}
	_, _ = jobs.Compact(t.Context(), pool, jobs.CompactOptions{Retry: true})

	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, secret) && !strings.Contains(line, "update agui.batch set events") {
			t.Errorf("%.400s", line)
		}
	}
	if !strings.Contains(log.String(), "UI005") {
		t.Error("the log has not what was refused")
	}
}
