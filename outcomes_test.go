package pgagui_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
)

const (
	interrupted = `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"approval"}]}}`
	cancelled   = `{"type":"RUN_FINISHED","outcome":{"type":"cancelled"},"result":{"stopped":true,"reason":"enough"}}`
)

// ends are ends of runs with the status that they give.
var ends = []struct {
	name string
	want pgagui.Status
	end  string
}{
	{"no outcome", pgagui.Finished, finished},
	{"success", pgagui.Finished, `{"type":"RUN_FINISHED","outcome":{"type":"success","pendingToolCallIds":["c"]}}`},
	{"unknown outcome", pgagui.Finished, `{"type":"RUN_FINISHED","outcome":{"type":"paused"}}`},
	{"null outcome", pgagui.Finished, `{"type":"RUN_FINISHED","outcome":null}`},
	{"outcome of another type", pgagui.Finished, `{"type":"RUN_FINISHED","outcome":"cancelled"}`},
	{"list as outcome", pgagui.Finished, `{"type":"RUN_FINISHED","outcome":[{"type":"cancelled"}]}`},
	{"outcome without a type", pgagui.Finished, `{"type":"RUN_FINISHED","outcome":{"interrupts":[]}}`},
	{"outcome whose type is no string", pgagui.Finished, `{"type":"RUN_FINISHED","outcome":{"type":["cancelled"]}}`},
	{"interrupt", pgagui.Interrupted, interrupted},
	{"interrupt with an empty list", pgagui.Interrupted, `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[]}}`},
	{"interrupt without a list", pgagui.Finished, `{"type":"RUN_FINISHED","outcome":{"type":"interrupt"}}`},
	{"interrupt with an object", pgagui.Finished, `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":{"id":"i"}}}`},
	{"cancelled", pgagui.Cancelled, cancelled},
	{"error", pgagui.Failed, failed},
	{"escapes", pgagui.Interrupted, `{"\u0074ype":"RUN_FINISHE\u0044","\u006futcome":{"t\u0079pe":"\u0069nterrupt","interrupt\u0073":[]}}`},
	{"escapes in cancelled", pgagui.Cancelled, `{"type":"RUN_FINISHED","outcome":{"type":"\u0063ancelled"}}`},
	{"NUL beside", pgagui.Cancelled, `{"type":"RUN_FINISHED","x":"\u0000\ud83d","outcome":{"type":"cancelled","y":"\u0000"}}`},
	{"NUL in the type", pgagui.Finished, `{"type":"RUN_FINISHED","outcome":{"type":"cancelled\u0000"}}`},
	{"lone surrogate in the type", pgagui.Finished, `{"type":"RUN_FINISHED","outcome":{"type":"\ud83dcancelled"}}`},
	{"the last of two outcomes", pgagui.Cancelled, `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[]},"outcome":{"type":"success","type":"cancelled"}}`},
	{"white space", pgagui.Interrupted, "{ \"type\" : \"RUN_FINISHED\" ,\n \"outcome\" : { \"interrupts\" : [ ] , \"type\" : \"interrupt\" } }"},
}

func TestStatusSaysTheOutcome(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	// Each is how the events of a run reach the log.
	paths := []struct {
		name string
		run  func(thread, end string) error
	}{
		{"one call", func(thread, end string) error {
			_, err := store.Append(ctx, pgagui.RunRef{ThreadID: thread, RunID: "r"}, rawEvents(started("r"), end), pgagui.AppendOptions{})
			return err
		}},
		{"two calls", func(thread, end string) error {
			mustAppend(t, store, thread, "r", rawEvents(started("r"), token(1)))
			_, err := store.Append(ctx, pgagui.RunRef{ThreadID: thread, RunID: "r"}, rawEvents(token(2), end), afterSeq(2))
			return err
		}},
		{"many", func(thread, end string) error {
			for _, event := range []string{started("r"), token(1), end} {
				var problem string
				err := pool.QueryRow(ctx, `select coalesce(error, '') from agui.append_many(array[$1], array['r'], array[$2::json])`, thread, "["+event+"]").Scan(&problem)
				if err == nil && problem != "" {
					err = errors.New(problem)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"import", func(thread, end string) error {
			_, err := store.Append(ctx, pgagui.RunRef{ThreadID: thread, RunID: "r"}, rawEvents(started("r"), end), pgagui.AppendOptions{TimesFromEvents: true})
			return err
		}},
		{"events behind the end", func(thread, end string) error {
			mustAppend(t, store, thread, "r", rawEvents(started("r"), end, token(1)))
			_, err := store.Append(ctx, pgagui.RunRef{ThreadID: thread, RunID: "r"}, rawEvents(token(2), token(3)), afterSeq(3))
			return err
		}},
		{"after another end", func(thread, end string) error {
			mustAppend(t, store, thread, "r", rawEvents(started("r"), cancelled))
			_, err := store.Append(ctx, pgagui.RunRef{ThreadID: thread, RunID: "r"}, rawEvents(end, token(1)), afterSeq(2))
			return err
		}},
		{"repeats in parts", func(thread, end string) error {
			run := pgagui.RunRef{ThreadID: thread, RunID: "r"}
			whole := rawEvents(started("r"), token(1), end, token(2), token(3))
			_, err := store.Append(ctx, run, whole[:2], afterSeq(0))
			for _, n := range []int{4, 3, 5, 1, 5} {
				if err == nil {
					_, err = store.Append(ctx, run, whole[:n], afterSeq(0))
				}
			}
			return err
		}},
	}
	for i, test := range ends {
		for _, path := range paths {
			thread := fmt.Sprintf("t%d/%s", i, path.name)
			if err := path.run(thread, test.end); err != nil {
				t.Errorf("%s, %s: %v", test.name, path.name, err)
				continue
			}
			if got := statusOf(t, store, thread, "r").Status; got != test.want {
				t.Errorf("%s, %s: the run is %s, want %s", test.name, path.name, got, test.want)
			}
			problems, err := store.Maintenance().Verify(ctx, thread)
			for _, problem := range problems {
				if problem.Severity == "damage" {
					t.Errorf("%s, %s: %s", test.name, path.name, problem.Problem)
				}
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	// Every end is where its row says.
	var wrong int
	err := pool.QueryRow(ctx, `
		select count(*)
		from agui.run
		left join agui.event on event.thread_key = run.thread_key and event.seq = run.end_seq
		where coalesce(event.type, '') not in ('RUN_FINISHED', 'RUN_ERROR')`).Scan(&wrong)
	if err != nil || wrong > 0 {
		t.Errorf("%d rows do not say where the run ended (%v)", wrong, err)
	}
}

func TestAnErrorAfterAnyOutcomeIsAFailure(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	mustAppend(t, store, "first", "r", rawEvents(failed))
	if status := statusOf(t, store, "first", "r"); status.Status != pgagui.Failed {
		t.Errorf("a run whose first event is RUN_ERROR is %s", status.Status)
	}
	for i, test := range ends {
		thread := fmt.Sprint("t", i)
		mustAppend(t, store, thread, "r", rawEvents(started("r"), test.end))
		_, err := store.Append(ctx, pgagui.RunRef{ThreadID: thread, RunID: "r"}, rawEvents(failed), pgagui.AppendOptions{})
		if (err == nil) != (test.want != pgagui.Failed) {
			t.Errorf("%s: RUN_ERROR behind it: %v", test.name, err)
		}
		if status := statusOf(t, store, thread, "r"); status.Status != pgagui.Failed || status.ErrorMessage != "no answer" {
			t.Errorf("%s: after RUN_ERROR the run is %s (%q)", test.name, status.Status, status.ErrorMessage)
		}
		if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: thread, RunID: "r"}, rawEvents(test.end), pgagui.AppendOptions{}); !errors.Is(err, pgagui.ErrRunEnded) {
			t.Errorf("%s: after RUN_ERROR: %v", test.name, err)
		}
	}
}

func TestVerifyComparesTheStatusWithTheOutcome(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	mustAppend(t, store, "t", "r", rawEvents(started("r"), token(1), interrupted, token(2)))
	mustVerifyDamage := func(want ...string) {
		t.Helper()
		problems, err := store.Maintenance().Verify(ctx, "t")
		var got []string
		for _, problem := range problems {
			if problem.Severity == "damage" {
				got = append(got, problem.Problem)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("verify says %q, %v; want %q", got, err, want)
		}
	}
	mustVerifyDamage()
	for _, status := range []string{"finished", "cancelled", "failed", "cut_off"} {
		must.Have(pool.Exec(ctx, `update agui.run set status = $1`, status))(t)
		mustVerifyDamage("the run is marked as " + status + ", by its log it is interrupted")
	}
	must.Have(pool.Exec(ctx, `update agui.run set status = 'interrupted', end_seq = 4`))(t)
	mustVerifyDamage("the run's last end is at seq 3, its row says 4")
}

// Of a store whose statuses were running, finished and failed.
func TestReapFindsTheEndsOfRestoredRows(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	for i, test := range ends {
		mustAppend(t, store, fmt.Sprint("t", i), "r", rawEvents(started("r"), test.end, token(1)))
	}
	mustAppend(t, store, "late", "r", rawEvents(started("r"), cancelled))
	for seq := range int64(20) {
		mustAppend(t, store, "late", "r", rawEvents(token(1)), afterSeq(seq+2))
	}
	mustAppend(t, store, "gone", "r", rawEvents(started("r")))
	mustAbandon(t, store, pgagui.RunRef{ThreadID: "gone", RunID: "r"}, pgagui.AbandonOptions{Reason: `the disk "C:\" is full`})
	mustAppend(t, store, "busy", "r", rawEvents(started("r")))
	const rows = `select array_agg(format('%s %s %s', thread_key, status, end_seq) order by thread_key) from agui.run`
	var before, after []string
	must.Do(t, pool.QueryRow(ctx, rows).Scan(&before))
	must.Have(pool.Exec(ctx, `call agui.compact()`))(t)
	if _, err := pool.Exec(ctx, `
		update agui.run set status = case status when 'running' then status when 'failed' then status when 'cut_off' then 'failed' else 'finished' end, end_seq = null`,
	); err != nil {
		t.Fatal(err)
	}
	must.Have(pool.Exec(ctx, `call agui.reap()`))(t)
	if err := pool.QueryRow(ctx, rows).Scan(&after); err != nil || !slices.Equal(before, after) {
		t.Errorf("the rows are\n%s\nwant\n%s\n(%v)", strings.Join(after, "\n"), strings.Join(before, "\n"), err)
	}
	var waiting int
	if err := pool.QueryRow(ctx, `select count(*) from agui.run where end_seq is null and status <> 'running'`).Scan(&waiting); err != nil || waiting > 0 {
		t.Errorf("%d runs are left (%v)", waiting, err)
	}
}

func TestAnImportedRunThatWasCutOffIsCutOff(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	const reason = `the disk "C:\" is full 😀`
	mustAppend(t, store, "t", "r", rawEvents(started("r"), `{"type":"TEXT_MESSAGE_START","messageId":"m"}`))
	mustAbandon(t, store, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.AbandonOptions{Reason: reason})
	log := rawEvents(payloads(t, store, "t", "r")...)

	mustAppend(t, store, "imported", "r", log, pgagui.AppendOptions{TimesFromEvents: true})
	if status := statusOf(t, store, "imported", "r"); status.Status != pgagui.CutOff || status.CutOffReason != reason || status.ErrorCode != "RUN_CUT_OFF" {
		t.Errorf("imported: %+v", status)
	}
	mustVerify(t, store, "imported")
	// An agent may pass on what another store says of a run.
	mustAppend(t, store, "live", "r", log)
	if status := statusOf(t, store, "live", "r"); status.Status != pgagui.Failed || status.CutOffReason != "" || status.ErrorCode != "RUN_CUT_OFF" {
		t.Errorf("appended: %+v", status)
	}
	mustVerify(t, store, "live")
}

func TestWhyARunEnded(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	long := strings.Repeat("é", 5000)
	mustAppend(t, store, "failed", "r", rawEvents(started("r"), token(1),
		`{"type":"RUN_ERROR","message":"no \"answer\"\n\u0000C:\\","code":"E\u00311"}`, token(2)))
	mustAppend(t, store, "long", "r", rawEvents(started("r"), `{"type":"RUN_ERROR","message":"`+long+`"}`))
	mustAppend(t, store, "odd", "r", rawEvents(started("r"), `{"type":"RUN_ERROR","message":{"a":1},"code":5}`))
	mustAppend(t, store, "cancelled", "r", rawEvents(started("r"), cancelled))
	mustAppend(t, store, "stopped", "r", rawEvents(started("r")))
	must.Have(store.RequestStop(ctx, pgagui.RunRef{ThreadID: "stopped"}, pgagui.RequestStopOptions{Reason: "by hand"}))(t)
	mustAppend(t, store, "stopped", "r", rawEvents(cancelled))
	mustAppend(t, store, "done", "r", rawEvents(started("r"), `{"type":"RUN_FINISHED","result":{"reason":"none"}}`))
	mustAppend(t, store, "gone", "r", rawEvents(started("r")))
	mustAbandon(t, store, pgagui.RunRef{ThreadID: "gone", RunID: "r"}, pgagui.AbandonOptions{Reason: "power cut"})
	for thread, want := range map[string]pgagui.RunEnd{
		// As in other texts of the API: what text cannot hold stays an escape.
		"failed":    {ErrorCode: "E11", ErrorMessage: "no \"answer\"\n" + `\u0000C:\u005c`},
		"long":      {ErrorMessage: long},
		"odd":       {},
		"cancelled": {StopReason: "enough"},
		"stopped":   {StopReason: "by hand"},
		"done":      {},
		"gone":      {ErrorCode: "RUN_CUT_OFF", ErrorMessage: "The run was cut off: power cut", CutOffReason: "power cut"},
	} {
		if got := statusOf(t, store, thread, "r").RunEnd; got != want {
			t.Errorf("status of %s: %+v, want %+v", thread, got, want)
		}
		if thread == "long" {
			want.ErrorMessage = strings.Repeat("é", 1000)
		}
		runs, err := store.Runs(ctx, thread)
		if err != nil || len(runs) != 1 || runs[0].RunEnd != want {
			t.Errorf("runs of %s: %+v, %v; want %+v", thread, runs, err, want)
		}
		lineage, err := store.Lineage(ctx, pgagui.RunRef{ThreadID: thread})
		if err != nil || len(lineage) != 1 || lineage[0].RunEnd != want {
			t.Errorf("lineage of %s: %+v, %v; want %+v", thread, lineage, err, want)
		}
		listed, err := store.Thread(ctx, thread)
		if err != nil || listed.RunEnd != want {
			t.Errorf("thread %s: %+v, %v; want %+v", thread, listed, err, want)
		}
	}
}

func TestListRuns(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	other := store.InScope("other")
	ctx := context.Background()
	var failures []string // the last first
	for i := range 25 {
		thread := fmt.Sprintf("t%d", i%5)
		for j, end := range []string{failed, finished, cancelled, interrupted} {
			mustAppend(t, store, thread, fmt.Sprintf("r%d-%d", i, j), rawEvents(started(fmt.Sprintf("r%d-%d", i, j)), end))
		}
		mustAppend(t, other, thread, fmt.Sprintf("other-%d", i), rawEvents(started(fmt.Sprintf("other-%d", i)), failed))
		failures = append([]string{fmt.Sprintf("%s r%d-0", thread, i)}, failures...)
	}
	mustAppend(t, store, "gone", "g", rawEvents(started("g")))
	mustAbandon(t, store, pgagui.RunRef{ThreadID: "gone", RunID: "g"}, pgagui.AbandonOptions{})
	list := func(options pgagui.ListRunsOptions) (got []string, pages int) {
		t.Helper()
		for {
			page := must.Have(store.ListRuns(ctx, options))(t)
			pages++
			for _, run := range page.Runs {
				got = append(got, run.ThreadID+" "+run.RunID)
			}
			if !page.HasMore {
				return got, pages
			}
			options.Cursor = page.Cursor
		}
	}
	if got, _ := list(pgagui.ListRunsOptions{}); !slices.Equal(got, append([]string{"gone g"}, failures...)) {
		t.Errorf("failed and cut off: %q", got)
	}
	if got, pages := list(pgagui.ListRunsOptions{Status: []pgagui.Status{pgagui.Failed}, Limit: 7}); !slices.Equal(got, failures) || pages != 4 {
		t.Errorf("failed, in %d pages: %q", pages, got)
	}
	if got, _ := list(pgagui.ListRunsOptions{Status: []pgagui.Status{pgagui.Cancelled, pgagui.Interrupted, pgagui.Cancelled}, Limit: 13}); len(got) != 50 || got[0] != "t4 r24-3" || got[1] != "t4 r24-2" {
		t.Errorf("cancelled and interrupted: %d, %q", len(got), got)
	}
	page, err := store.ListRuns(ctx, pgagui.ListRunsOptions{Limit: 2})
	if err != nil || len(page.Runs) != 2 {
		t.Fatal(page, err)
	}
	if run := page.Runs[1]; run.Status != pgagui.Failed || run.ErrorMessage != "no answer" || run.ParentRunID != "r19-3" || run.LastSeq != 34 {
		t.Errorf("a listed run: %+v", run)
	}
	if got, _ := list(pgagui.ListRunsOptions{Since: page.Runs[1].EndedAt}); len(got) != 2 {
		t.Errorf("since: %q", got)
	}
	for _, options := range []pgagui.ListRunsOptions{
		{Status: []pgagui.Status{pgagui.Finished}}, {Status: []pgagui.Status{"stale"}}, {Cursor: "x"}, {Cursor: strings.Repeat("f", 40)},
	} {
		if _, err := store.ListRuns(ctx, options); !errors.Is(err, pgagui.ErrInvalidArgument) {
			t.Errorf("%+v: %v", options, err)
		}
	}
	if _, err := store.ListRuns(ctx, pgagui.ListRunsOptions{Limit: 1001}); !errors.Is(err, pgagui.ErrLimitExceeded) {
		t.Errorf("a page of 1,001: %v", err)
	}
}

func TestThreadsByStatus(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	mustAppend(t, store, "failed before", "a", rawEvents(started("a"), failed))
	mustAppend(t, store, "failed before", "b", rawEvents(started("b"), finished))
	mustAppend(t, store, "failed", "a", rawEvents(started("a"), failed))
	mustAppend(t, store, "asks", "a", rawEvents(started("a"), interrupted))
	mustAppend(t, store, "asked", "a", rawEvents(started("a"), interrupted))
	mustAppend(t, store, "asked", "b", rawEvents(started("b"), finished))
	mustAppend(t, store, "stopped", "a", rawEvents(started("a"), cancelled))
	mustAppend(t, store, "failed long ago", "a", rawEvents(started("a"), failed))
	must.Have(pool.Exec(ctx, `update agui.run set ended_at = now() - interval '1 year' where run_id = 'a' and thread_key = agui.thread_key('', 'failed long ago')`))(t)
	mustAppend(t, store, "failed long ago", "b", rawEvents(started("b"), finished))
	for _, test := range []struct {
		options pgagui.ThreadsOptions
		want    string
	}{
		{pgagui.ThreadsOptions{Status: pgagui.Failed}, "failed, failed before, failed long ago"},
		{pgagui.ThreadsOptions{Status: pgagui.Failed, Since: time.Now().Add(-time.Hour)}, "failed, failed before"},
		{pgagui.ThreadsOptions{Status: pgagui.Failed, HeadOnly: true}, "failed"},
		{pgagui.ThreadsOptions{Status: pgagui.Cancelled}, "stopped"},
		{pgagui.ThreadsOptions{Status: pgagui.Interrupted}, "asks"},
		{pgagui.ThreadsOptions{Status: pgagui.CutOff}, ""},
		{pgagui.ThreadsOptions{Status: pgagui.Finished}, "asked, failed before, failed long ago"},
	} {
		page := must.Have(store.Threads(ctx, test.options))(t)
		var got []string
		for _, thread := range page.Threads {
			got = append(got, thread.ID)
		}
		slices.Sort(got)
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%+v: %q, want %q", test.options, got, test.want)
		}
	}
}

func TestInterruptsExpire(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	list := []string{
		`{"id":"past","reason":"approval","message":"Go on?","toolCallId":"c","expiresAt":"2020-01-02T03:04:05.678+01:00"}`,
		`{"id":"soon","reason":"x\u0000","expiresAt":"` + soon.Format(time.RFC3339Nano) + `"}`,
		`{"id":"never","reason":"approval"}`,
		`{"id":"odd","reason":"approval","expiresAt":"tomorrow"}`,
		`"text"`,
	}
	mustAppend(t, store, "t", "r", rawEvents(started("r"), `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[`+strings.Join(list, ",")+`]}}`))
	got, err := store.Interrupts(context.Background(), "t", pgagui.At{})
	if err != nil || len(got) != len(list) {
		t.Fatal(got, err)
	}
	for i, want := range []pgagui.Interrupt{
		{ID: "past", Reason: "approval", Message: "Go on?", ToolCallID: "c", ExpiresAt: time.Date(2020, 1, 2, 2, 4, 5, 678e6, time.UTC), Expired: true},
		{ID: "soon", Reason: `x\u0000`, ExpiresAt: soon},
		{ID: "never", Reason: "approval"},
		{ID: "odd", Reason: "approval"},
		{},
	} {
		same := got[i]
		same.JSON, same.ExpiresAt = nil, want.ExpiresAt
		if string(got[i].JSON) != list[i] || !got[i].ExpiresAt.Equal(want.ExpiresAt) || fmt.Sprint(same) != fmt.Sprint(want) {
			t.Errorf("interrupt %d is %+v (%s), want %+v", i, got[i], got[i].JSON, want)
		}
	}
}

func TestPendingToolCalls(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	call := func(id string) string {
		return `{"type":"TOOL_CALL_START","toolCallId":"` + id + `","toolCallName":"f"}`
	}
	result := func(id string) string {
		return `{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"` + id + `","content":""}`
	}
	for name, test := range map[string]struct {
		events []string
		want   string
	}{
		"none":          {[]string{finished}, ""},
		"from stream":   {[]string{call("a"), call("b"), call("c"), result("b"), finished}, "a c"},
		"twice":         {[]string{call("b"), call("a"), call("b"), finished}, "b a"},
		"chunks":        {[]string{`{"type":"TOOL_CALL_CHUNK","toolCallId":"a","toolCallName":"f"}`, `{"type":"TOOL_CALL_CHUNK","delta":"{}"}`, finished}, "a"},
		"escapes":       {[]string{`{"type":"TOOL_CALL_ST\u0041RT","toolCallId":"\u0061","toolCallName":"f","x":"\u0000"}`, finished}, "a"},
		"named":         {[]string{call("a"), call("b"), `{"type":"RUN_FINISHED","outcome":{"type":"success","pendingToolCallIds":["b","z"]}}`}, "b z"},
		"none named":    {[]string{call("a"), `{"type":"RUN_FINISHED","outcome":{"type":"success","pendingToolCallIds":[]}}`}, "a"},
		"in progress":   {[]string{call("a")}, ""},
		"failed":        {[]string{call("a"), failed}, ""},
		"cancelled":     {[]string{call("a"), cancelled}, ""},
		"interrupted":   {[]string{call("a"), interrupted}, ""},
		"odd":           {[]string{`{"type":"TOOL_CALL_START","toolCallId":5}`, finished}, ""},
		"behind an end": {[]string{call("a"), finished, result("a")}, ""},
	} {
		mustAppend(t, store, name, "r", rawEvents(append([]string{started("r")}, test.events...)...))
		got, err := store.PendingToolCalls(context.Background(), pgagui.RunRef{ThreadID: name})
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
	}
}

// However the events behind RUN_ERROR reach the log, they have no effect until a RUN_STARTED.
func TestRunErrorIsFinal(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	const late = `{"type":"STATE_SNAPSHOT","snapshot":{"late":1}}`
	again, step, ended := started("r"), `{"type":"STEP_FINISHED","stepName":"s"}`, `{"type":"RUN_ERROR","message":"later"}`
	for i, test := range []struct {
		name   string
		events []string
		want   pgagui.Status
		endSeq int64
		state  string
	}{
		{"an end", []string{failed, step, late, finished}, pgagui.Failed, 2, "{}"},
		{"another error", []string{failed, late, ended}, pgagui.Failed, 2, "{}"},
		{"an error behind an end", []string{finished, failed, late, cancelled}, pgagui.Failed, 3, "{}"},
		{"a custom event", []string{failed, `{"type":"CUSTOM","name":"n"}`}, pgagui.Failed, 2, "{}"},
		{"another beginning", []string{failed, finished, again, late, finished}, pgagui.Finished, 6, `{"late":1}`},
		{"a beginning without an end", []string{failed, again, late}, pgagui.Failed, 2, `{"late":1}`},
		{"a second error", []string{failed, again, ended, late, finished}, pgagui.Failed, 4, "{}"},
	} {
		events := rawEvents(append([]string{started("r")}, test.events...)...)
		for size := 1; size <= len(events); size++ {
			thread := fmt.Sprint(i, "-", size)
			seq := int64(0)
			for from := 0; from < len(events); from += size {
				// The last call was answered, but its writer has not seen that: it repeats half of it.
				seen := max(0, from-size/2)
				mustAppend(t, store, thread, "r", events[seen:min(from+size, len(events))], afterSeq(int64(seen)))
				seq = int64(min(from+size, len(events)))
			}
			var endSeq int64
			must.Do(t, pool.QueryRow(ctx, `select end_seq from agui.run where thread_key = agui.thread_key('', $1)`, thread).Scan(&endSeq))
			check := func(when string) {
				t.Helper()
				status := statusOf(t, store, thread, "r")
				conversation := must.Have(store.Restore(ctx, thread, pgagui.At{}))(t)
				if status.Status != test.want || endSeq != test.endSeq || string(conversation.State) != test.state || seq != int64(len(events)) {
					t.Errorf("%s in calls of %d%s: %s, end at %d, state %s; want %s, %d, %s",
						test.name, size, when, status.Status, endSeq, conversation.State, test.want, test.endSeq, test.state)
				}
				if test.want == pgagui.Failed && test.endSeq == 2 && status.ErrorMessage != "no answer" {
					t.Errorf("%s in calls of %d%s: the error is %q", test.name, size, when, status.ErrorMessage)
				}
			}
			check("")
			must.Have(pool.Exec(ctx, `call agui.compact()`))(t)
			check(", compacted")
			problems, err := store.Maintenance().Verify(ctx, thread)
			for _, problem := range problems {
				if problem.Severity == "damage" {
					err = errors.Join(err, errors.New(problem.Problem))
				}
			}
			if err != nil {
				t.Errorf("%s in calls of %d: %v", test.name, size, err)
			}
		}
	}
}
