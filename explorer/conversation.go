package explorer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/transcript"
)

// mostDepth bounds how far subagents of subagents are indented.
const mostDepth = 4

// mostMarkupOfPage bounds the texts of a page that become markup, in bytes.
const mostMarkupOfPage = 1 << 20

// mostText is how much of one text a page shows. The whole is in the log.
const mostText = 20_000

// conversation is what a page shows of one: its last messages.
type conversation struct {
	Parts []part
	// Earlier is how many messages there are before, and EarlierLink where they are.
	Earlier     int
	EarlierLink string
}

// part is a message, a tool call or whatever else a conversation consists of.
type part struct {
	transcript.Item
	// Key names the part for as long as the conversation goes on.
	Key string
	// Where it is in the log; nil: not known.
	Place *place
	// Continue leads to a new run from the message on; empty: there is none.
	Continue string
	// Depth is that of the subagent that says it; 0: the main agent.
	Depth    int
	Subagent string

	HTML        template.HTML // what an assistant says
	Shown       string        // any other text
	Cut         string        // how much was left out
	Lines       []transcript.Line
	Preview     string // of the arguments
	ArgumentsOf string
	ResultOf    string
	Duration    string
	Attachments []attachment

	// Run begins here: the runs of the conversation, between their messages.
	Run *runMark
	// End is how a run ended that did not finish.
	End *runEnd
	// Answers are those to interrupts.
	Answers []answer
}

// place is where something is in the log.
type place struct {
	RunID    string
	FirstSeq int64
	LastSeq  int64
	Link     string
}

type runMark struct {
	pgagui.Run
	Link     string
	Duration string
}

type runEnd struct {
	Run   pgagui.Run
	Code  string
	Text  string
	Title string
	// Answered is what the agent answered in place of events, for readers who may see it, and Body how it reads.
	Answered *pgagui.AgentError
	Body     string
}

// answer is an interrupt and what was answered to it.
type answer struct {
	Question, Reason string
	Status, Payload  string
}

type attachment struct {
	pgagui.MessageAttachment
	Link, Size string
	IsImage    bool
}

// activities lays out what agents show of their work.
var activities = transcript.New(transcript.Options{})

// said is what partsOf lays out.
type said struct {
	thread               string
	messages, interrupts []json.RawMessage
	// first is the position of the first message in its conversation.
	first     int
	isRunning bool
	lastSeq   int64 // the last event of the run
	// placed has the places of the messages; nil: they are not known.
	placed    []pgagui.PlacedMessage
	subagents map[string]pgagui.Subagent
}

// partsOf returns the parts of messages.
func partsOf(s said) []part {
	of := transcript.Conversation{
		Messages: s.messages, Interrupts: s.interrupts, Running: s.isRunning, Calls: callsOf(s.placed), Subagents: map[string]transcript.Subagent{},
	}
	for id, subagent := range s.subagents {
		of.Subagents[id] = transcript.Subagent{Name: subagent.Name, Depth: subagent.Depth}
	}
	items := of.Items()
	parts := make([]part, 0, len(items))
	message, number, markup := -2, 0, 0
	for _, item := range items {
		if item.Message != message {
			message, number = item.Message, 0
		}
		key := fmt.Sprintf("m%d-%d", s.first+item.Message, number)
		if item.Message < 0 {
			key = fmt.Sprintf("i%d", number)
		}
		number++
		markup += len(item.Text)
		p := partOf(item, key, markup <= mostMarkupOfPage)
		if item.SubagentRunID != "" {
			p.Depth = min(max(s.subagents[item.SubagentRunID].Depth, 1), mostDepth)
		}
		if item.Message >= 0 && item.Message < len(s.placed) {
			p.Place = placeOf(s.thread, item, s.placed[item.Message])
			if p.Place != nil && !s.isRunning && item.Kind == transcript.Message && isForkable(s.placed[item.Message:]) {
				p.Continue = link("continue", "id", s.thread, "run", p.Place.RunID, "message", item.ID)
			}
		}
		parts = append(parts, p)
	}
	return parts
}

// callsOf returns how long tool calls took: from their beginning to the message with the result.
func callsOf(placed []pgagui.PlacedMessage) map[string]transcript.Call {
	began, calls := map[string]time.Time{}, map[string]transcript.Call{}
	for _, message := range placed {
		for _, call := range message.Calls {
			began[call.ID] = call.StartedAt
		}
		if message.Role != "tool" || message.RunID == "" {
			continue
		}
		var of struct{ ToolCallID string }
		_ = json.Unmarshal(message.JSON, &of) // an odd one belongs to no call
		if at, isThere := began[of.ToolCallID]; isThere && message.StartedAt.After(at) {
			calls[of.ToolCallID] = transcript.Call{Duration: message.StartedAt.Sub(at)}
		}
	}
	return calls
}

// placeOf returns where the log has an item of a message; nil: it is not known.
func placeOf(thread string, item transcript.Item, message pgagui.PlacedMessage) *place {
	if message.RunID == "" {
		return nil
	}
	at := place{RunID: message.RunID, FirstSeq: message.FirstSeq, LastSeq: message.LastSeq}
	for _, call := range message.Calls {
		if item.Kind == transcript.ToolCall && call.ID == item.ID {
			at.FirstSeq, at.LastSeq = call.FirstSeq, call.LastSeq
		}
	}
	at.Link = link("time", "id", thread, "run", at.RunID, "seq", at.FirstSeq)
	return &at
}

// partOf lays an item out.
func partOf(item transcript.Item, key string, hasMarkup bool) part {
	p := part{Item: item, Key: key, Subagent: item.SubagentName}
	switch item.Kind {
	case transcript.Message:
		if item.Role == "assistant" && hasMarkup {
			p.HTML = markdownHTML(item.Text)
		}
		if p.HTML == "" {
			p.Shown, p.Cut = cut(item.Text)
		}
	case transcript.Reasoning:
		p.Shown, p.Cut = cut(item.Text)
		p.Preview = short(p.Shown, 140)
	case transcript.ToolCall:
		p.Preview = previewOf(item.Arguments)
		p.ArgumentsOf, _ = cut(prettyArguments(item.Arguments))
		p.ResultOf, p.Cut = cut(prettyResult(item.Result))
		if item.DurationMs > 0 {
			p.Duration = durationText(milliseconds(item.DurationMs))
		}
	case transcript.ToolResult:
		p.ResultOf, p.Cut = cut(prettyResult(item.Result))
	case transcript.Activity:
		p.Lines = activities.Lines(item)
		if len(p.Lines) > 400 {
			p.Cut = countText(len(p.Lines)-400, "line")
			p.Lines = p.Lines[:400]
		}
		for i := range p.Lines {
			p.Lines[i].Text, _ = cut(p.Lines[i].Text)
			p.Lines[i].Depth = min(p.Lines[i].Depth, 8)
		}
	case transcript.Interrupt:
		p.Shown, p.Cut = cut(item.Text)
	}
	return p
}

// Speaker is who says the part.
func (p part) Speaker() string {
	switch {
	case p.Name != "":
		return p.Name
	case p.Role != "":
		return strings.ToUpper(p.Role[:1]) + short(p.Role[1:], 24)
	}
	return "Message"
}

// State says how a tool call is, and IsBad whether that is a failure.
func (p part) State() string {
	switch {
	case p.Error != "":
		return "failed"
	case p.Status == transcript.Completed:
		return "done"
	case p.Status == transcript.CutOff:
		return "cut off"
	case p.Status == transcript.Streaming:
		return "arguments still come"
	}
	return "no result yet"
}

// StateClass is the class of State.
func (p part) StateClass() string {
	switch {
	case p.Error != "", p.Status == transcript.CutOff:
		return "bad"
	case p.Status == transcript.Completed:
		return "good"
	}
	return "running"
}

// cut returns the beginning of a text that is too long, and how much was left out.
func cut(text string) (kept, note string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= mostText {
		return text, ""
	}
	kept = text[:mostText]
	for len(kept) > 0 && !utf8.RuneStart(text[len(kept)]) {
		kept = kept[:len(kept)-1]
	}
	return kept, bytesText(int64(len(text) - len(kept)))
}

// pretty returns JSON with line breaks, and any other text as it is.
func pretty(text []byte) string {
	if len(text) > 4*mostText {
		return string(text) // it is cut anyway
	}
	var out bytes.Buffer
	if json.Indent(&out, bytes.TrimSpace(text), "", "  ") != nil {
		return string(text)
	}
	return out.String()
}

// prettyArguments returns the arguments of a tool call: JSON, or the text that came so far.
func prettyArguments(arguments json.RawMessage) string {
	var text string
	if json.Unmarshal(arguments, &text) == nil {
		return text
	}
	return pretty(arguments)
}

// previewOf returns arguments on one line.
func previewOf(arguments json.RawMessage) string {
	if len(arguments) > 2000 {
		arguments = arguments[:2000]
	}
	var text string
	if json.Unmarshal(arguments, &text) == nil {
		return short(text, 160)
	}
	if string(bytes.TrimSpace(arguments)) == "{}" {
		return ""
	}
	return short(string(arguments), 160)
}

// prettyResult returns the result of a tool: mostly JSON in a string.
func prettyResult(result json.RawMessage) string {
	var text string
	if json.Unmarshal(result, &text) != nil {
		return pretty(result)
	}
	if strings.HasPrefix(strings.TrimSpace(text), "{") || strings.HasPrefix(strings.TrimSpace(text), "[") {
		return pretty([]byte(text))
	}
	return text
}
