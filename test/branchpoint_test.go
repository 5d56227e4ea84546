package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
)

// TestTheBranchPointOfAClient tests the thread u1 a1 | u2 a2, in which a client names no parent. The server's tests of branches
// have more cases.
func TestTheBranchPointOfAClient(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for run := 1; run <= 2; run++ {
		testdb.Exec(t, pool, `select agui.append('t', $1, $2::json)`, fmt.Sprint("r", run), fmt.Sprintf(`[
			{"type":"RUN_STARTED","threadId":"t","runId":"r%[1]d","input":{"messages":[{"id":"u%[1]d","role":"user","content":"Hi \u0000"}]}},
			{"type":"ACTIVITY_SNAPSHOT","messageId":"p%[1]d","activityType":"PLAN","content":{}},
			{"type":"TEXT_MESSAGE_CHUNK","messageId":"a%[1]d","role":"assistant","delta":"Hello"},
			{"type":"RUN_FINISHED","threadId":"t","runId":"r%[1]d"}]`, run))
	}
	list := func(messages ...string) json.RawMessage {
		for i, message := range messages {
			id, text, _ := strings.Cut(message, " ")
			role := map[byte]string{'u': "user", 'a': "assistant", 's': "system"}[id[0]]
			messages[i] = fmt.Sprintf(`{"id":%q,"role":%q,"content":"%s"}`, id, role, text)
		}
		return json.RawMessage("[" + strings.Join(messages, ",") + "]")
	}
	u1, u2 := `u1 Hi \u0000`, `u2 Hi \u0000`
	empty, first := "", "r1"
	for _, test := range []struct {
		name string
		sent pgagui.ClientMessages
		want pgagui.BranchPoint
	}{
		{"all and a new one", pgagui.ClientMessages{Messages: list(u1, "a1 Hello", u2, "a2 Hello", "u3 New")}, pgagui.BranchPoint{ParentRunID: "r2", Point: "head"}},
		{"a new one", pgagui.ClientMessages{Messages: list("u3 New")}, pgagui.BranchPoint{ParentRunID: "r2", Point: "head", IsFilled: true, LacksHistory: true}},
		{"a new one of a client that sends all", pgagui.ClientMessages{Messages: list("u3 New"), History: "full"}, pgagui.BranchPoint{Point: "start"}},
		{"regenerate", pgagui.ClientMessages{Messages: list(u1, "a1 Hello", u2)}, pgagui.BranchPoint{ParentRunID: "r1", Point: "before"}},
		{"edit", pgagui.ClientMessages{Messages: list(u1, "a1 Hello", "u2 Else")}, pgagui.BranchPoint{ParentRunID: "r1", Point: "before"}},
		{"edit by new messages", pgagui.ClientMessages{Messages: list("u2 Else"), History: "new"}, pgagui.BranchPoint{ParentRunID: "r1", Point: "before", IsFilled: true}},
		{"edit the first", pgagui.ClientMessages{Messages: list("u1 Else")}, pgagui.BranchPoint{Point: "start"}},
		{"trimmed", pgagui.ClientMessages{Messages: list(u2, "a2 Hello", "u3 New")}, pgagui.BranchPoint{ParentRunID: "r2", Point: "elsewhere"}},
		{"given", pgagui.ClientMessages{Messages: list(u1, "a1 Hello", u2), IsGiven: true}, pgagui.BranchPoint{ParentRunID: "r2", Point: "head"}},
		{"it waited for the last run", pgagui.ClientMessages{Messages: list(u1, "a1 Hello", u2), WaitedFrom: &first}, pgagui.BranchPoint{ParentRunID: "r2", Point: "head", IsFilled: true, LacksHistory: true}},
		{"it waited for both", pgagui.ClientMessages{Messages: list(u1, u2), WaitedFrom: &empty}, pgagui.BranchPoint{ParentRunID: "r2", Point: "head", IsFilled: true, LacksHistory: true}},
	} {
		got, err := store.BranchPoint(t.Context(), pgagui.RunRef{ThreadID: "t"}, test.sent)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if (got.HistoryBytes > 100) != (got.ParentRunID != "") {
			t.Errorf("%s: the history has %d bytes", test.name, got.HistoryBytes)
		}
		got.HistoryBytes = 0
		if got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
	got, err := store.AgentMessages(t.Context(), pgagui.RunRef{ThreadID: "t"}, list("s1 Be brief", u2, "u3 New"))
	if err != nil {
		t.Fatal(err)
	}
	var messages []struct{ ID string }
	if err := json.Unmarshal(got, &messages); err != nil || fmt.Sprint(messages) != "[{u1} {a1} {u2} {a2} {s1} {u3}]" {
		t.Errorf("the agent gets %s (%v)", got, err)
	}
	for _, wrong := range []string{`{}`, `[1]`, `null`} {
		if _, err := store.BranchPoint(t.Context(), pgagui.RunRef{ThreadID: "t"}, pgagui.ClientMessages{Messages: json.RawMessage(wrong)}); err == nil {
			t.Errorf("messages %s are accepted", wrong)
		}
	}
}
