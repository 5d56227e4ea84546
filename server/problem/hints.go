package problem

import "regexp"

// speaksSQL matches hints of the database that name what a client of HTTP does not have: functions,
// parameters as SQL writes them, scopes, database sessions.
var speaksSQL = regexp.MustCompile(`agui\.|=>|after_seq|next_cursor|scope|pg_|lock_timeout|\b(select|alter) `)

// hints are what a client of HTTP can do instead, by SQLSTATE. Without one, the detail says it all.
var hints = map[string]string{
	"UI002": "GET /threads/{threadId}/branches lists the runs that branches end with. A run begins with RUN_STARTED.",
	"UI005": "Append late events as a new run.",
	"UI006": "Wait until that run has ended, or stop it with POST /threads/{threadId}/stop.",
	"UI008": "Send an afterSeq of 0 to repeat the call that begins the run.",
	"UI009": "Use a new runId for a new run. To repeat a call whose answer was lost, send its afterSeq.",
	"UI011": "Read in pages: continue with the last position of this one.",
	"UI012": "Use another thread id.",
	"UI013": "Leave afterSeq out, or request the shape \"events\".",
	"UI014": "Use another thread id.",
	"UI017": "The log lost its last events. Read the thread from its beginning, or append what follows the seq at which it ends now.",
	"UI018": "Another writer has saved it: load it, apply the change to that version, and save the result with If-Match.",
	"UI019": "GET /threads/{threadId}/checkpoints lists those that there are.",
	"UI022": "GET /threads/{threadId}/history still has the events. The operator of the store can look into it.",
	"UI023": "GET /threads/{threadId}/history still has the events. The operator of the store can raise the limit.",
	"UI025": "The operator of the store keeps this thread, and can permit its erasure.",
	"UI026": "The operator of the store can turn search on.",
	"UI027": "Repeat the request: the thread is being moved. If it lasts, the operator has to give the server all nodes of the cluster.",
	"22023": "Send the value as the API describes it: GET /openapi.yaml.",
}

// hintOf returns the hint for a client of HTTP, given that of the database.
func hintOf(code, hint string) string {
	if speaksSQL.MatchString(hint) {
		return hints[code]
	}
	return hint
}
