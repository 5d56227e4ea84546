package test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/testdb"
)

// scenes are streams of subagents that open things in ways that generated streams do not: the same id again, in another spelling, or for
// several things; subagents in subagents; steps of one name; the events of protocol 0.x. None of them says anything in another's lane, so
// they may be mixed into a run in any way.
var scenes = [][]string{
	{
		`{"type":"SUBAGENT_STARTED","subagentRunId":"one","name":"helper"}`,
		`{"type":"STEP_STARTED","stepName":"step","subagentRunId":"one"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"again","subagentRunId":"one"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"again","delta":"x","subagentRunId":"one"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"\u0061gain","subagentRunId":"\u006fne"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"ag\u0061in","subagentRunId":"\u006fne"}`,
		`{"type":"SUBAGENT_STARTED","subagentRunId":"inner","name":"helper","parentSubagentRunId":"one"}`,
		`{"type":"STEP_STARTED","stepName":"step","subagentRunId":"inner"}`,
		`{"type":"TOOL_CALL_START","toolCallId":"again","toolCallName":"f","subagentRunId":"inner"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"again","subagentRunId":"one"}`,
		`{"type":"TOOL_CALL_END","toolCallId":"again","subagentRunId":"inner"}`,
		`{"type":"STEP_FINISHED","stepName":"step","subagentRunId":"one"}`,
		`{"type":"STEP_STARTED","stepName":"\u0073tep","subagentRunId":"one"}`,
		`{"type":"TOOL_CALL_START","toolCallId":"again","toolCallName":"f","subagentRunId":"inner"}`,
		`{"type":"TOOL_CALL_END","toolCallId":"again","subagentRunId":"inner"}`,
		`{"type":"STEP_FINISHED","stepName":"step","subagentRunId":"inner"}`,
		`{"type":"SUBAGENT_FINISHED","subagentRunId":"inner"}`,
		`{"type":"STEP_FINISHED","stepName":"step","subagentRunId":"one"}`,
		`{"type":"SUBAGENT_ERROR","subagentRunId":"on\u0065","message":"no"}`,
	},
	{
		`{"type":"SUBAGENT_STARTED","subagentRunId":"two \" \\ \u0000 \ud83d é","name":"helper"}`,
		`{"type":"REASONING_START","messageId":"think","subagentRunId":"two \" \\ \u0000 \ud83d é"}`,
		`{"type":"REASONING_MESSAGE_START","messageId":"think","role":"reasoning","subagentRunId":"two \" \\ \u0000 \ud83d é"}`,
		`{"type":"REASONING_MESSAGE_CONTENT","messageId":"think","delta":"x","subagentRunId":"two \" \\ \u0000 \ud83d é"}`,
		`{"type":"REASONING_MESSAGE_END","messageId":"think","subagentRunId":"two \" \\ \u0000 \ud83d é"}`,
		`{"type":"REASONING_MESSAGE_START","messageId":"think \\u0041 \n","role":"reasoning","subagentRunId":"two \" \\ \u0000 \ud83d é"}`,
		`{"type":"REASONING_MESSAGE_START","messageId":"think","role":"reasoning","subagentRunId":"two \" \u005c \u0000 \ud83d é"}`,
		`{"type":"REASONING_MESSAGE_END","messageId":"think \\u0041 \u000a","subagentRunId":"two \" \\ \u0000 \ud83d é"}`,
		`{"type":"REASONING_MESSAGE_END","messageId":"think","subagentRunId":"two \" \\ \u0000 \ud83d é"}`,
		`{"type":"REASONING_END","messageId":"think","subagentRunId":"two \" \\ \u0000 \ud83d é"}`,
		`{"type":"SUBAGENT_FINISHED","subagentRunId":"two \" \\ \u0000 \ud83d \u00e9"}`,
	},
	{
		`{"type":"THINKING_START","title":"hm","subagentRunId":"three"}`,
		`{"type":"THINKING_TEXT_MESSAGE_START","subagentRunId":"three"}`,
		`{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"x","subagentRunId":"three"}`,
		`{"type":"THINKING_TEXT_MESSAGE_END","subagentRunId":"three"}`,
		`{"type":"THINKING_END","subagentRunId":"three"}`,
		`{"type":"THINKING_START","subagentRunId":"three"}`,
		`{"type":"THINKING_TEXT_MESSAGE_START","subagentRunId":"three"}`,
		`{"type":"THINKING_TEXT_MESSAGE_END","subagentRunId":"three"}`,
		`{"type":"THINKING_TEXT_MESSAGE_START","subagentRunId":"three"}`,
		`{"type":"THINKING_TEXT_MESSAGE_END","subagentRunId":"three"}`,
		`{"type":"THINKING_END","subagentRunId":"three"}`,
	},
}

// cutOffRun returns the first events of a valid run, generated, with scenes mixed in.
func cutOffRun(seed uint64, options compactiontest.Options) []json.RawMessage {
	random := rand.New(rand.NewPCG(seed, 4))
	stream := compactiontest.Stream(seed, options)
	run := []json.RawMessage{stream[0]}
	// A step of the main agent of the same name as those of the subagents.
	if random.IntN(2) == 0 {
		run = append(run, json.RawMessage(`{"type":"STEP_STARTED","stepName":"step"}`))
	}
	mixed := make([][]string, len(scenes))
	for i, scene := range scenes {
		if random.IntN(2) == 0 {
			mixed[i] = scene
		}
	}
	for _, event := range stream[1:] {
		var head struct{ Type string }
		if err := json.Unmarshal(event, &head); err != nil {
			panic(err)
		}
		if head.Type == "RUN_FINISHED" || head.Type == "RUN_ERROR" {
			break
		}
		run = append(run, event)
		for i := range mixed {
			for len(mixed[i]) > 0 && random.IntN(3) == 0 {
				run = append(run, json.RawMessage(mixed[i][0]))
				mixed[i] = mixed[i][1:]
			}
		}
	}
	return run[:1+random.IntN(len(run))]
}

// A run that is ended in its writer's place is one that the official client accepts; and it has an end for all that it opened: even
// RUN_FINISHED, before which the client wants nothing left open, could be its last event.
func TestARunThatIsCutOffIsValid(t *testing.T) {
	t.Parallel()
	client := startOracle(t, "--verify")
	pool := testdb.Pool(t)
	var runs [][]json.RawMessage
	for seed := *firstSeed; seed < *firstSeed+uint64(streamsOfAKind(3)); seed++ {
		for i, options := range []compactiontest.Options{{Events: 30}, {Events: 150}, {Events: 60, Unicode: true, Proposals: true}} {
			runs = append(runs, cutOffRun(seed<<8+uint64(i), options))
		}
	}
	for i, given := range client.fold(t, runs...) {
		if !given.Verified {
			t.Fatalf("the verifier refuses the stream as it is: %s\n%s", given.VerifyError, lines(runs[i]))
		}
	}

	random := rand.New(rand.NewPCG(*firstSeed, 5))
	const reason = `"gone" \u0041 C:\new`
	closed, finished, ends := make([][]json.RawMessage, len(runs)), make([][]json.RawMessage, len(runs)), map[string]int{}
	for i, run := range runs {
		var calls []appendCall
		for rest := run; len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			calls = append(calls, appendCall{thread: new(fmt.Sprint("t", i)), run: new("run-1"), events: new(string(compactiontest.Batch(rest[:n])))})
			rest = rest[n:]
		}
		answers, err := appendMany(pool, calls, "")
		if err != nil || slices.ContainsFunc(answers, func(answer appendAnswer) bool { return answer.code != "" }) {
			t.Fatalf("%v %v", answers, err)
		}
		testdb.Exec(t, pool, `select agui.abandon($1, 'run-1', $2)`, fmt.Sprint("t", i), reason)
		log := testdb.List[string](t, pool, `select payload::text from agui.events($1) order by seq`, fmt.Sprint("t", i))
		closed[i] = toMessages(log)
		finished[i] = append(toMessages(log[:len(log)-1]), json.RawMessage(`{"type":"RUN_FINISHED","threadId":"t","runId":"run-1"}`))
		for _, event := range log[len(run):] {
			var end struct{ Type, Message string }
			if err := json.Unmarshal([]byte(event), &end); err != nil {
				t.Fatalf("%v: %s", err, event)
			}
			if ends[end.Type]++; strings.HasSuffix(end.Type, "_ERROR") && end.Message != "The run was cut off: "+reason {
				t.Errorf("%s says %q", end.Type, end.Message)
			}
		}
	}
	for i, folded := range client.fold(t, closed...) {
		if !folded.Verified {
			t.Errorf("-seed %d: the verifier refuses the run: %s\n%s", *firstSeed, folded.VerifyError, lines(closed[i]))
		}
	}
	for i, folded := range client.fold(t, finished...) {
		if !folded.Verified {
			t.Errorf("-seed %d: the run is not whole: %s\n%s", *firstSeed, folded.VerifyError, lines(finished[i]))
		}
	}
	for _, end := range []string{"TEXT_MESSAGE_END", "TOOL_CALL_END", "REASONING_MESSAGE_END", "REASONING_END", "THINKING_TEXT_MESSAGE_END", "THINKING_END",
		"STEP_FINISHED", "SUBAGENT_ERROR", "RUN_ERROR"} {
		if ends[end] == 0 {
			t.Errorf("no run was closed with %s: %v", end, ends)
		}
	}
}
