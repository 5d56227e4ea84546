package test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// A thread whose id has the same hash as that of another one is refused (UI012) wherever its id is given: it must not read, change or end
// what belongs to the other. The hash cannot be made to collide, so here the row of a thread says that it is another one.
func TestACollisionOfThreadKeysIsRefusedEverywhere(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `
		select agui.append('t', 'r1', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]');
		select agui.append('t', 'r2', '[{"type":"RUN_STARTED"}]');
		select agui.save_session_state('t', 'k', '1', 'r1'), agui.save_session_state('t', 'k', '1'), agui.save_checkpoint('t', 'c', '1');
		alter table agui.thread disable trigger user;
		update agui.thread set thread_id = 'of somebody else'`, pgx.QueryExecModeSimpleProtocol)
	before := storedLog(t, pool)

	// What is given for arguments without a default.
	values := map[string]string{
		"thread_id": `'t'`, "run_id": `'r2'`, "run_a": `'r1'`, "run_b": `'r2'`, "key": `'k'`, "document": `'{}'`, "checkpoint_id": `'c'`, "to_thread_id": `'u'`, "run_ids": `'{r1}'`,
		"events": `'[{"type":"CUSTOM"}]'`, "messages": `'[]'`,
		"claimant": `'me'`, "consumer": `'c'`, "seq": `1`, "reason": `'x'`, "message_id": `'m'`, "n": `1`,
		"task_id": `'task'`, "channels": `'{a}'`, "types": `'{json}'`, "channel_values": `'[1]'`,
		"status": `422`, "content_type": `''`, "body": `''`,
	}
	// These take the id of a thread, and look at none.
	others := []string{"thread_key", "bucket", "session_runs", "verify", "retry", "checkpoint_contents", "remove_run_checkpoints"}
	calls := map[string]string{
		"append, with after_seq":         `agui.append('t', 'r2', '[{"type":"CUSTOM"}]', 3)`,
		"append, an end":                 `agui.append('t', 'r2', '[{"type":"RUN_FINISHED"}]')`,
		"append, a repeat":               `agui.append('t', 'r1', '[{"type":"RUN_STARTED"}]', 0)`,
		"append, a run":                  `agui.append('t', 'r3', '[{"type":"RUN_STARTED"}]', parallel => true)`,
		"restore of a run":               `agui.restore('t', 'r1')`,
		"load_session_state of a run":    `agui.load_session_state('t', 'k', 'r1')`,
		"load_session_state, a version":  `agui.load_session_state('t', 'k', version => 1)`,
		"session_versions of a run":      `agui.session_versions('t', 'k', 'r1')`,
		"save_session":                   `agui.save_session('{"threadId":"t","state":{"k":3}}')`,
		"load_sessions":                  `agui.load_sessions('{t}')`,
		"retry, one thread":              `agui.retry(thread_id => 't')`,
		"load_checkpoint, the last":      `agui.load_checkpoint('t')`,
		"load_checkpoint of a run":       `agui.load_checkpoint('t', run_id => 'r1')`,
		"checkpoint_contents":            `agui.checkpoint_contents('t')`,
		"remove_run_checkpoints":         `agui.remove_run_checkpoints('{r1}', 't')`,
		"remove_session_state, whatever": `agui.remove_session_state('t', 'k', overwrite => true)`,
	}
	rows, err := pool.Query(ctx, `
		select proname, proargnames[: pronargs - pronargdefaults]
		from pg_proc
		where pronamespace = 'agui'::regnamespace and 'thread_id' = any (proargnames[: pronargs])`)
	must.Do(t, err)
	var name string
	var arguments []string
	if _, err := pgx.ForEachRow(rows, []any{&name, &arguments}, func() error {
		if slices.Contains(others, name) {
			return nil
		}
		var given []string
		for _, argument := range arguments {
			if values[argument] == "" {
				t.Errorf("agui.%s: no value for %s", name, argument)
			}
			given = append(given, values[argument])
		}
		calls[name] = fmt.Sprintf("agui.%s(%s)", name, strings.Join(given, ", "))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls {
		if _, err := pool.Exec(ctx, `select * from `+call); testdb.State(err) != "UI012" {
			t.Errorf("%s: %s: %v", name, call, err)
		}
	}

	// Those for many threads answer each.
	for _, answer := range []struct{ statement, want string }{
		{`select string_agg(error_code, ',') from agui.append_many('{t,t,t}', '{r2,r2,r3}', array['[{"type":"CUSTOM"}]', '[{"type":"RUN_FINISHED"}]', '[{"type":"RUN_STARTED"}]']::json[])`, "UI012,UI012,UI012"},
		{`select problem from agui.poll('{t}', '{0}')`, "UI012"},
		{`select count(*)::text from agui.keep_alive('{t}', '{r1}')`, "0"},
	} {
		var got string
		if err := pool.QueryRow(ctx, answer.statement).Scan(&got); err != nil || got != answer.want {
			t.Errorf("%s: %q, error %v, want %q", answer.statement, got, err, answer.want)
		}
	}
	if after := storedLog(t, pool); !slices.Equal(after, before) {
		t.Errorf("the log became\n%s\nit was\n%s", after, before)
	}
	store := pgagui.New(pool, nil)
	for _, err := range store.Follow(ctx, "t", pgagui.FollowOptions{}) {
		if !errors.Is(err, pgagui.ErrKeyCollision) {
			t.Errorf("following: %v", err)
		}
		break
	}
}
