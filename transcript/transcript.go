// Package transcript writes AG-UI conversations as text for people: messages, reasoning, tool calls with their
// results, activities at their places, and the interrupts that wait for an answer. It needs no database: a
// [Conversation] is made of messages as AG-UI clients and pgagui.Store.Restore have them.
//
// [Conversation.Items] splits a conversation into items; a [Writer] lays them out. A [Renderer] says how the
// activities of a type look. PLAN, SEARCH and WORKFLOW have one; for other types the content is shown as JSON.
//
// The content of a conversation is not trusted: escape sequences, control characters and characters that change
// the direction of text are written as visible escapes.
package transcript

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Options say how a [Writer] writes conversations.
type Options struct {
	// Width is the number of terminal columns at which lines are wrapped, at least 20; 0 means no
	// wrapping.
	Width int
	// Color marks speakers and progress by ANSI escape sequences.
	Color bool
	// Full writes everything. Otherwise long arguments, results, activities, reasoning and
	// instructions are shortened, with a note of how much was left out. What users and assistants
	// say is always written in full.
	Full bool
	// Hint ends that note: how to see everything.
	Hint string
}

// A Writer writes conversations. Make one with [New]. Several goroutines may use it at the same
// time, except for Register.
type Writer struct {
	options   Options
	renderers map[string]Renderer
}

// New returns a writer with the renderers for PLAN, SEARCH and WORKFLOW.
func New(options Options) *Writer {
	if options.Width > 0 {
		options.Width = max(options.Width, 20)
	}
	w := &Writer{options: options, renderers: map[string]Renderer{}}
	w.Register("PLAN", Checklist("tasks", "steps", "items", "todos", "plan"))
	w.Register("SEARCH", Checklist("sources", "searches", "queries", "steps"))
	w.Register("WORKFLOW", Checklist("steps", "stages", "tasks"))
	return w
}

// Register sets the renderer for the activities of a type, in place of an earlier one; nil means
// the default. The comparison of types ignores case.
func (w *Writer) Register(activityType string, renderer Renderer) {
	w.renderers[strings.ToUpper(activityType)] = renderer
}

// Write writes a conversation. It returns only errors of the io.Writer, whatever the conversation
// holds.
func (w *Writer) Write(out io.Writer, conversation Conversation) error {
	p := &page{out: bufio.NewWriter(out), width: w.options.Width, color: w.options.Color}
	if conversation.Title != "" {
		p.head(noMargin, NoMark, span{conversation.Title, bold})
	}
	speaker := ""
	kind := Kind("")
	introduced := map[string]bool{}
	for _, item := range conversation.Items() {
		p.indentTo(conversation.level(item))
		switch now := item.speaker(); {
		case now != speaker:
			p.gap()
			heading := []span{{now, speakerStyle(item)}}
			if note := conversation.Subagents[item.SubagentRunID].Note; note != "" && item.Kind != Interrupt && !introduced[item.SubagentRunID] {
				introduced[item.SubagentRunID] = true
				heading = append(heading, span{"  " + note, dim})
			}
			p.head(noMargin, NoMark, heading...)
			speaker = now
		case item.Kind != kind || kind != ToolCall && kind != Interrupt:
			p.gap()
		}
		kind = item.Kind
		w.writeItem(p, item)
	}
	last := conversation.Answers
	if conversation.Failure != "" {
		last = append(slices.Clip(last), Line{Mark: Failed, Text: conversation.Failure})
	}
	if len(last) > 0 {
		p.indentTo(0)
		p.gap()
		p.body(noMargin, last)
	}
	return p.out.Flush()
}

// level is how far an item is indented. Interrupts wait for the user, also those of subagents.
func (c *Conversation) level(item Item) int {
	if item.SubagentRunID == "" || item.Kind == Interrupt {
		return 0
	}
	return max(c.Subagents[item.SubagentRunID].Depth, 1)
}

// speaker is the heading of consecutive items of one speaker.
func (item *Item) speaker() string {
	speaker := "assistant"
	switch item.Kind {
	case Interrupt:
		speaker = "waits for an answer"
	case Message:
		speaker = cmp.Or(item.Role, "message")
	}
	if item.Name != "" {
		speaker += " " + item.Name
	}
	if item.SubagentRunID != "" {
		speaker += " (subagent " + strings.TrimPrefix(item.SubagentName+" "+item.SubagentRunID, " ") + ")"
	}
	return speaker
}

func speakerStyle(item Item) string {
	switch {
	case item.Kind == Interrupt:
		return bold + ";" + yellow
	case item.Role == "user":
		return bold + ";" + cyan
	}
	return bold
}

func (w *Writer) writeItem(p *page, item Item) {
	switch item.Kind {
	case Message:
		lines := []Line{{Text: cmp.Or(item.Text, "(empty)")}}
		if item.Role != "user" && item.Role != "assistant" {
			lines = w.shorten(lines)
		}
		p.body(indented, lines)
	case Reasoning:
		p.head(indented, NoMark, span{"reasoning", dim})
		p.body(quoted, w.shorten([]Line{{Text: cmp.Or(item.Text, "(encrypted)")}}))
	case ToolCall:
		w.writeToolCall(p, item)
	case ToolResult:
		p.head(indented, NoMark, span{"result of tool call " + cmp.Or(item.ID, "without an id"), dim})
		w.writeResult(p, item)
	case Activity:
		p.head(indented, NoMark, span{cmp.Or(item.ActivityType, "activity"), bold})
		lines := w.Lines(item)
		if len(lines) == 0 {
			lines = []Line{{Note: "(empty)"}}
		}
		p.body(framed, w.shorten(lines))
	case Interrupt:
		text := item.Text
		if item.Reason != "" {
			text = strings.TrimSuffix(item.Reason+": "+text, ": ")
		}
		note := strings.TrimSpace("interrupt " + item.ID)
		switch {
		case item.Expired:
			note += ", expired " + item.ExpiresAt.Local().Format("2006-01-02 15:04:05")
		case !item.ExpiresAt.IsZero():
			note += ", expires " + item.ExpiresAt.Local().Format("2006-01-02 15:04:05")
		}
		p.body(indented, []Line{{Mark: Pending, Text: cmp.Or(text, "(no reason)"), Note: note}})
	}
}

func (w *Writer) writeToolCall(p *page, item Item) {
	mark, note := Active, "waits for its result"
	switch item.Status {
	case Streaming:
		note = "arguments still come"
	case CutOff:
		mark, note = Failed, "cut off"
	case Completed:
		mark, note = Done, ""
		if item.DurationMs > 0 {
			note = durationText(time.Duration(item.DurationMs) * time.Millisecond)
		}
	}
	if item.Error != "" {
		mark = Failed
	}
	arguments, below := argumentLines(item)
	spans := []span{{cmp.Or(item.ToolName, "(no name)"), bold}, {arguments, ""}}
	if note != "" {
		spans = append(spans, span{"  " + note, dim})
	}
	p.head(indented, mark, spans...)
	p.body(deeper, w.shorten(below))
	w.writeResult(p, item)
}

func (w *Writer) writeResult(p *page, item Item) {
	lines := resultLines(item.Result)
	if item.Error != "" {
		p.body(framed, w.shorten([]Line{{Mark: Failed, Text: item.Error}}))
	} else if item.Result != nil && len(lines) == 0 {
		lines = []Line{{Note: "(empty)"}}
	}
	p.body(framed, w.shorten(lines))
}

// argumentLines returns the arguments of a tool call: short ones for the line with its name, in parentheses, others for the lines below it.
func argumentLines(item Item) (behind string, below []Line) {
	if text, isText := stringOf(item.Arguments); isText {
		if text == "" {
			return "()", nil
		}
		if item.Status == Streaming || item.Status == CutOff {
			text += "…"
		}
		return "", []Line{{Text: text}}
	}
	if text, short := shortJSON(item.Arguments, true); short {
		if text == "{}" {
			text = ""
		}
		return "(" + text + ")", nil
	}
	return "", JSON(item.Arguments)
}

// resultLines returns the lines of the result of a tool: mostly JSON in a string.
func resultLines(result json.RawMessage) []Line {
	text := textOf(result)
	for json.Valid([]byte(text)) {
		inner, isText := stringOf([]byte(text))
		if !isText {
			return JSON([]byte(text))
		}
		text = inner
	}
	if text == "" {
		return nil
	}
	return []Line{{Text: text}}
}

// A text longer than the first of these is shortened to the second.
const (
	mostLines, keptLines           = 14, 10
	mostCharacters, keptCharacters = 1000, 700
)

func (w *Writer) shorten(lines []Line) []Line {
	if w.options.Full {
		return lines
	}
	allLines, allCharacters := 0, 0
	for _, line := range lines {
		allLines += 1 + strings.Count(line.Text, "\n")
		allCharacters += utf8.RuneCountInString(line.Text) + utf8.RuneCountInString(line.Note)
	}
	if allLines <= mostLines && allCharacters <= mostCharacters {
		return lines
	}
	var kept []Line
	linesLeft, charactersLeft := keptLines, keptCharacters
	for _, line := range lines {
		if linesLeft == 0 || charactersLeft == 0 {
			break
		}
		line.Text, linesLeft, charactersLeft = cut(line.Text, linesLeft, charactersLeft)
		line.Note, _, charactersLeft = cut(line.Note, 1, charactersLeft)
		kept = append(kept, line)
	}
	note := fmt.Sprintf("… %d more lines", allLines-(keptLines-linesLeft))
	if charactersLeft == 0 {
		note = fmt.Sprintf("… %d more characters", allCharacters-keptCharacters)
	}
	if w.options.Hint != "" {
		note += " (" + w.options.Hint + ")"
	}
	return append(kept, Line{Note: note})
}

// cut returns at most a number of lines and characters of a text, and how many more there are.
func cut(text string, lines, characters int) (kept string, linesLeft, charactersLeft int) {
	for at, character := range text {
		if character == '\n' {
			lines--
		}
		if lines == 0 || characters == 0 {
			return text[:at], lines, characters
		}
		characters--
	}
	return text, lines - 1, characters
}

// durationText returns a duration with about three digits: 8ms, 1.25s, 3m12s.
func durationText(duration time.Duration) string {
	switch {
	case duration < time.Second:
		return duration.String()
	case duration < time.Minute:
		return duration.Round(10 * time.Millisecond).String()
	}
	return duration.Round(time.Second).String()
}
