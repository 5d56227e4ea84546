package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"
)

// Conversation is a conversation to write.
type Conversation struct {
	// Title is the first line; empty means none.
	Title string
	// Messages are AG-UI messages, in order, as pgagui.Restored has them.
	Messages []json.RawMessage
	// Interrupts are the interrupts that wait for an answer.
	Interrupts []json.RawMessage
	// Answers are what the run brought for the interrupts of the run before it.
	Answers []Line
	// Failure says why the run failed or was cut off: the last line. Empty means that it did not.
	Failure string
	// Running says that the run is in progress, so that the arguments of a tool call may be
	// incomplete. It matters for calls that Calls lacks.
	Running bool
	// Calls has what messages do not say of tool calls, by their ids. The status of a call that it
	// lacks depends on whether the messages have its result.
	Calls map[string]Call
	// Subagents has what messages do not say of subagents, by their subagentRunIds. What a subagent
	// says is indented; by one level if it is not here.
	Subagents map[string]Subagent
}

// Subagent is what messages do not say of a subagent.
type Subagent struct {
	Name  string
	Depth int    // 1: a subagent of the main agent
	Note  string // for people: how it ended. Stands where it speaks first
}

// Call is what messages do not say of a tool call.
type Call struct {
	Status   CallStatus
	Duration time.Duration // from its first event to its result; 0 if unknown
}

// CallStatus is the progress of a tool call.
type CallStatus string

// The statuses of a tool call.
const (
	Streaming CallStatus = "streaming" // its arguments are not complete
	Called    CallStatus = "called"    // it has no result yet
	Completed CallStatus = "completed" // it has its result
	CutOff    CallStatus = "cut_off"   // its run failed, or ended before its arguments were all there
)

// Kind is the kind of an item.
type Kind string

// The kinds of items.
const (
	Message    Kind = "message"
	Reasoning  Kind = "reasoning"
	ToolCall   Kind = "tool_call"
	ToolResult Kind = "tool_result" // one that belongs to no call of the conversation, or comes after the call's first
	Activity   Kind = "activity"
	Interrupt  Kind = "interrupt"
)

// Item is a part of a conversation. Its kind determines which fields are set; the JSON form has no
// others.
type Item struct {
	Kind Kind `json:"kind"`
	// Message is the index of its message in Conversation.Messages; -1: an interrupt has none.
	Message int `json:"-"`
	// ID is the id of the message, the tool call or the interrupt.
	ID            string `json:"id,omitempty"`
	Role          string `json:"role,omitempty"`
	Name          string `json:"name,omitempty"`          // of the speaker, if given
	SubagentRunID string `json:"subagentRunId,omitempty"` // empty: the main agent
	SubagentName  string `json:"subagentName,omitempty"`  // if Conversation.Subagents has it
	// Text is the text of messages, reasoning and interrupts. Images and other media appear in it
	// as [image/png].
	Text string `json:"text,omitempty"`

	// ToolName, Arguments, Status and DurationMs (milliseconds; 0 if unknown) belong to tool calls.
	// Arguments that are not valid JSON are a JSON string.
	ToolName   string          `json:"toolName,omitempty"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	Status     CallStatus      `json:"status,omitempty"`
	DurationMs int64           `json:"durationMs,omitempty"`

	// Result is the content of the message of the tool, a string or a list of parts; nil if there
	// is none. Error says why a tool failed.
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`

	ActivityType string          `json:"activityType,omitempty"`
	Content      json.RawMessage `json:"content,omitempty"` // of an activity

	Reason string `json:"reason,omitempty"` // of an interrupt
	// ExpiresAt is the time in the expiresAt of an interrupt; zero if there is none, or if it is no
	// time. Expired is true if it has passed: the interrupt can only be cancelled then.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	Expired   bool      `json:"expired,omitempty"`
}

// message is what this package reads of an AG-UI message.
type message struct {
	ID             string          `json:"id"`
	Role           string          `json:"role"`
	Name           string          `json:"name"`
	SubagentRunID  string          `json:"subagentRunId"`
	Content        json.RawMessage `json:"content"`
	EncryptedValue string          `json:"encryptedValue"`
	ActivityType   string          `json:"activityType"`
	ToolCallID     string          `json:"toolCallId"`
	Error          string          `json:"error"`
	ToolCalls      []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"toolCalls"`

	taken bool // the result of a call that has it
}

// Items returns the parts of the conversation, in order. The result of a tool call is part of its
// call, wherever its message is.
func (c *Conversation) Items() []Item {
	messages := make([]message, len(c.Messages))
	called := map[string]bool{}
	for i, raw := range c.Messages {
		messages[i] = readMessage(raw)
		for _, call := range messages[i].ToolCalls {
			called[call.ID] = true
		}
	}
	results := map[string]*message{} // those that are parts of calls
	for i := range messages {
		if m := &messages[i]; m.Role == "tool" && called[m.ToolCallID] && results[m.ToolCallID] == nil {
			results[m.ToolCallID] = m
		}
	}

	var items []Item
	for i := range messages {
		m := &messages[i]
		begin := len(items)
		if item, ok := m.item(); ok && results[m.ToolCallID] != m {
			items = append(items, item)
		}
		items = append(items, c.toolCalls(m, results)...)
		for of := begin; of < len(items); of++ {
			items[of].Message = i
		}
	}
	for _, raw := range c.Interrupts {
		items = append(items, interruptItem(raw, messages))
	}
	for i := range items {
		items[i].SubagentName = c.Subagents[items[i].SubagentRunID].Name
	}
	return items
}

// readMessage reads a message leniently: a field of another type counts as absent, and a value that is not an
// object as a text.
func readMessage(raw json.RawMessage) (m message) {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) || !json.Valid(raw) {
		return message{Content: raw}
	}
	_ = json.Unmarshal(raw, &m)
	return m
}

// item returns the item of the message itself, without its tool calls; false if it has no content.
func (m *message) item() (item Item, ok bool) {
	item = Item{Kind: Message, ID: m.ID, Role: m.Role, Name: m.Name, SubagentRunID: m.SubagentRunID}
	switch m.Role {
	case "reasoning":
		item.Kind, item.Text = Reasoning, textOf(m.Content)
		return item, item.Text != "" || m.EncryptedValue != ""
	case "activity":
		item.Kind, item.ActivityType, item.Content = Activity, m.ActivityType, m.Content
		return item, true
	case "tool":
		item.Kind, item.ID, item.Result, item.Error = ToolResult, m.ToolCallID, m.Content, m.Error
		return item, true
	}
	item.Text = textOf(m.Content)
	return item, item.Text != "" || len(m.ToolCalls) == 0
}

// toolCalls are the calls of a message. The result belongs to the first call of its id.
func (c *Conversation) toolCalls(m *message, results map[string]*message) []Item {
	var items []Item
	for _, call := range m.ToolCalls {
		item := Item{Kind: ToolCall, ID: call.ID, Role: m.Role, Name: m.Name, SubagentRunID: m.SubagentRunID, ToolName: call.Function.Name}
		var whole bool
		item.Arguments, whole = argumentsOf(call.Function.Arguments)
		result := results[call.ID]
		if result != nil && !result.taken {
			result.taken = true
			item.Result, item.Error = result.Content, result.Error
		}
		switch {
		case result != nil:
			item.Status = Completed
		case whole:
			item.Status = Called
		case c.Running:
			item.Status = Streaming
		case len(item.Arguments) <= len(`""`):
			item.Status = Called // a tool without arguments
		default:
			item.Status = CutOff
		}
		if known, ok := c.Calls[call.ID]; ok {
			item.Status = cmp.Or(known.Status, item.Status)
			item.DurationMs = known.Duration.Milliseconds()
		}
		items = append(items, item)
	}
	return items
}

// argumentsOf returns the arguments of a call as JSON. Arguments that are not valid, mostly because they are
// incomplete, become a JSON string.
func argumentsOf(raw json.RawMessage) (arguments json.RawMessage, whole bool) {
	text, isText := stringOf(raw)
	if !isText {
		return raw, true // not a string: no client writes this, but it can be shown
	}
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(text)) != nil {
		return raw, false
	}
	return compact.Bytes(), true
}

func interruptItem(raw json.RawMessage, messages []message) Item {
	var interrupt struct {
		ID            string `json:"id"`
		Reason        string `json:"reason"`
		SubagentRunID string `json:"subagentRunId"`
		ExpiresAt     string `json:"expiresAt"`
	}
	_ = json.Unmarshal(raw, &interrupt)
	item := Item{
		Kind: Interrupt, Message: -1, ID: interrupt.ID, Reason: interrupt.Reason, Text: questionOf(raw, messages), SubagentRunID: interrupt.SubagentRunID,
	}
	if at, err := time.Parse(time.RFC3339, interrupt.ExpiresAt); err == nil {
		item.ExpiresAt, item.Expired = at, !at.After(time.Now())
	}
	return item
}

// Question returns what an interrupt asks: its message, or the tool call that it is about with its arguments, if the messages
// have it, or its metadata. Empty if it says nothing.
func Question(interrupt json.RawMessage, messages []json.RawMessage) string {
	read := make([]message, len(messages))
	for i, raw := range messages {
		read[i] = readMessage(raw)
	}
	return questionOf(interrupt, read)
}

func questionOf(raw json.RawMessage, messages []message) string {
	var interrupt struct {
		Message    string          `json:"message"`
		ToolCallID string          `json:"toolCallId"`
		Metadata   json.RawMessage `json:"metadata"`
	}
	_ = json.Unmarshal(raw, &interrupt)
	if interrupt.Message != "" {
		return interrupt.Message
	}
	for _, m := range messages {
		for _, call := range m.ToolCalls {
			if interrupt.ToolCallID != "" && call.ID == interrupt.ToolCallID {
				return strings.TrimSpace(call.Function.Name + " " + compactText(call.Function.Arguments))
			}
		}
	}
	switch metadata := compactText(interrupt.Metadata); {
	case metadata != "" && metadata != "{}" && metadata != "null":
		return metadata
	case interrupt.ToolCallID != "":
		return "tool call " + interrupt.ToolCallID
	}
	return ""
}

// compactText returns a string, or JSON without spaces, also that in a string.
func compactText(raw json.RawMessage) string {
	text, isText := stringOf(raw)
	if !isText {
		text = string(raw)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(text)) != nil {
		return text
	}
	return compact.String()
}

// textOf returns the text of a content: a string, or a list of parts, with placeholders for parts that are not text.
func textOf(content json.RawMessage) string {
	if text, isText := stringOf(content); isText {
		return text
	}
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil {
		return string(content) // another shape: as it is
	}
	var texts []string
	for _, raw := range parts {
		texts = append(texts, partText(raw))
	}
	return strings.Join(texts, "\n")
}

func partText(raw json.RawMessage) string {
	var part struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		MimeType string `json:"mimeType"` // of "binary", the parts before protocol 1.0
		URL      string `json:"url"`
		Filename string `json:"filename"`
		Source   struct {
			Type     string `json:"type"`
			Value    string `json:"value"`
			MimeType string `json:"mimeType"`
		} `json:"source"`
	}
	_ = json.Unmarshal(raw, &part)
	if part.Type == "text" {
		return part.Text
	}
	placeholder := cmp.Or(part.Source.MimeType, part.MimeType, part.Type, "part")
	from := cmp.Or(part.Filename, part.URL)
	if part.Source.Type != "data" && from == "" {
		from = part.Source.Value
	}
	if from != "" {
		placeholder += " " + from
	}
	return "[" + placeholder + "]"
}

// stringOf decodes a JSON string; a missing value and null count as "".
func stringOf(raw json.RawMessage) (text string, isText bool) {
	if len(raw) == 0 {
		return "", true
	}
	return text, json.Unmarshal(raw, &text) == nil
}
