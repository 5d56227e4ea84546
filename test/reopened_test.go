package test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// What waits is what a restore of the head has: also after the run with the answer failed, or broke off.
func TestAnAnswerThatFailedOpensTheQuestionAgain(t *testing.T) {
	t.Parallel()
	const (
		asks   = `{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"approval"}]}}`
		fails  = `{"type":"RUN_STARTED"},{"type":"RUN_ERROR","message":"no"}`
		ends   = `{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}`
		begins = `{"type":"RUN_STARTED"}`
	)
	type run struct{ id, parent, events string }
	for name, test := range map[string]struct {
		runs   []run
		status string // of the interrupt in agui.interrupt_fact, and the run that answers it
		waits  bool
	}{
		"asked":                           {[]run{{"r1", "", asks}}, "waiting", true},
		"the answer failed":               {[]run{{"r1", "", asks}, {"r2", "r1", fails}}, "waiting", true},
		"it failed twice":                 {[]run{{"r1", "", asks}, {"r2", "r1", fails}, {"r3", "r2", fails}}, "waiting", true},
		"the answer is in progress":       {[]run{{"r1", "", asks}, {"r2", "r1", fails}, {"r3", "r2", begins}}, "answering r3", false},
		"the second answer finished":      {[]run{{"r1", "", asks}, {"r2", "r1", fails}, {"r3", "r2", ends}}, "answered r3", false},
		"it finished, then failed":        {[]run{{"r1", "", asks}, {"r2", "r1", ends + `,{"type":"RUN_ERROR","message":"no"}`}}, "answered r2", false},
		"it asked, then failed":           {[]run{{"r1", "", asks + `,{"type":"RUN_ERROR","message":"no"}`}}, "waiting", true},
		"another answer to what has one":  {[]run{{"r1", "", asks}, {"r2", "r1", ends}, {"r3", "r1", fails}}, "waiting", true},
		"another answer is the head":      {[]run{{"r1", "", asks}, {"r2", "r1", fails}, {"r3", "r1", ends}}, "answered r3", false},
		"the conversation went elsewhere": {[]run{{"r0", "", ends}, {"r1", "r0", asks}, {"r2", "r0", ends}}, "answered", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			for i, r := range test.runs {
				testdb.Exec(t, pool, `select agui.append('t', $1, $2, parent_run_id => nullif($3, ''))`, r.id, "["+r.events+"]", r.parent)
				if i%2 == 0 { // the job hears of some runs together, of others alone
					testdb.Exec(t, pool, `call agui.project()`)
				}
			}
			// The job leaves out what a transaction in another database may precede.
			wait.For(t, "the fact is "+test.status, func() bool {
				testdb.Exec(t, pool, `call agui.project()`)
				return testdb.Ask[string](t, pool, `select coalesce(string_agg(concat_ws(' ', status, answered_by), ','), '-') from agui.interrupt_fact`) == test.status
			})
			for what, sql := range map[string]string{
				"agui.waiting":    `select exists (select from agui.waiting())`,
				"agui.threads":    `select exists (select from agui.threads(status => 'interrupted'))`,
				"agui.interrupts": `select exists (select from agui.interrupts('t')) and (select status <> 'running' from agui.run order by run_no desc limit 1)`,
			} {
				if got := testdb.Ask[bool](t, pool, sql); got != test.waits {
					t.Errorf("%s: it waits: %t", what, got)
				}
			}
			mustVerify(t, pool)
		})
	}
}

func mustVerify(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	if wrong := testdb.Ask[string](t, pool, `select coalesce(string_agg(problem, '; '), '') from agui.verify('t')`); wrong != "" {
		t.Error(wrong)
	}
}
