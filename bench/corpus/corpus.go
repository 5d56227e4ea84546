// Package corpus generates the conversations of the benchmark: what an agent streams to its UI,
// token by token, with reasoning, tool calls, activities and a state that grows.
//
// The text is English, from the comments of the installed Go source tree. The same seed and the
// same Go version give the same bytes.
package corpus

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
)

// Conversation is a thread with its runs, in the order in which they are appended.
type Conversation struct {
	ThreadID string
	Runs     []Run
}

// Run holds the events of a run, from RUN_STARTED to RUN_FINISHED or RUN_ERROR.
type Run struct {
	RunID       string            `json:"runId"`
	ParentRunID string            `json:"parentRunId,omitempty"` // "" for the first run of a thread
	Events      []json.RawMessage `json:"events"`
}

// Events counts the events of a conversation.
func (c Conversation) Events() int {
	count := 0
	for _, run := range c.Runs {
		count += len(run.Events)
	}
	return count
}

// Bytes is the size of the events of a conversation as JSON.
func (c Conversation) Bytes() int {
	size := 0
	for _, run := range c.Runs {
		for _, event := range run.Events {
			size += len(event)
		}
	}
	return size
}

// WriteFile writes a conversation as NDJSON, one run per line:
// {"threadId","runId","parentRunId","events"}.
func WriteFile(path string, conversation Conversation) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffer := bufio.NewWriter(file)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	for _, run := range conversation.Runs {
		line := struct {
			ThreadID string `json:"threadId"`
			Run
		}{conversation.ThreadID, run}
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	return buffer.Flush()
}

// Corpus generates conversations.
type Corpus struct {
	paragraphs []string
}

// Open collects the text. It needs the go command and its source tree.
func Open(ctx context.Context) (*Corpus, error) {
	paragraphs, err := collectParagraphs(ctx)
	if err != nil {
		return nil, err
	}
	return &Corpus{paragraphs: paragraphs}, nil
}

// Text returns all the text, for conversations that are made elsewhere.
func (c *Corpus) Text() string { return strings.Join(c.paragraphs, "\n\n") }

// tokenSize is the average size of a token in bytes.
const tokenSize = 4

// Everyday is an ordinary chat: answers, most of them after tool calls, with some reasoning, some
// changes of a small state, and a few activities. A run has about 320 events of about 150 bytes.
func (c *Corpus) Everyday(seed uint64, runs int) Conversation {
	w := c.writer(seed, tokenSize)
	for number := range runs {
		w.begin("")
		if number == 0 {
			w.stateSnapshot()
		}
		w.step("model", func() {
			if w.chance(40) {
				w.reasoning(200 + w.IntN(300))
			}
			for range w.IntN(3) {
				w.toolCall(40+w.IntN(80), 200+w.IntN(400))
			}
			if w.chance(20) {
				w.activity(4)
			}
			if w.chance(40) {
				w.changeState(1, 2)
			}
			w.answer(700 + w.IntN(800))
		})
		w.finish()
	}
	return w.conversation
}

// Short is a question and its answer of a sentence. Its run has about 20 events.
func (c *Corpus) Short(seed uint64) Conversation {
	w := c.writer(seed, tokenSize)
	w.begin("")
	w.answer(90)
	w.finish()
	return w.conversation
}

// Exchanges is a long conversation of short turns: a question, sometimes a tool call, and an answer of
// a few sentences. A run has about 100 events.
func (c *Corpus) Exchanges(seed uint64, runs int) Conversation {
	w := c.writer(seed, tokenSize)
	for number := range runs {
		w.begin("")
		if number == 0 {
			w.stateSnapshot()
		}
		w.step("model", func() {
			if w.chance(50) {
				w.toolCall(30+w.IntN(30), 100+w.IntN(200))
			}
			if w.chance(30) {
				w.changeState(1, 2)
			}
			w.answer(250 + w.IntN(250))
		})
		if w.chance(2) {
			w.fail()
		} else {
			w.finish()
		}
	}
	return w.conversation
}

// AllTypes has every event type of the protocol within a few runs. The state has about 15 KB, and
// each run begins with a snapshot of it. A run has about 320 events.
func (c *Corpus) AllTypes(seed uint64, runs int) Conversation {
	const stateSize = 15_000
	w := c.writer(seed, tokenSize)
	w.fillState(stateSize)
	for number := range runs {
		w.begin("")
		w.stateSnapshot()
		w.step("plan", func() {
			w.encryptedValue(w.reasoning(250))
			w.activity(5)
			w.emit("CUSTOM", "name", "progress", "value", map[string]any{"percent": 10 * (number % 10)})
		})
		w.step("work", func() {
			w.toolCall(80, 400)
			w.toolCallInChunks(60, 200)
			w.changeState(0, 14)
			if number%3 == 0 {
				w.subagent(150, number%6 == 0)
			}
			w.emit("RAW", "event", map[string]any{"provider": "model", "usage": map[string]int{"output_tokens": w.IntN(900)}}, "source", "model")
		})
		w.reasoningInChunks(80)
		w.answerInChunks(80)
		w.answer(630)
		if number%4 == 3 {
			w.messagesSnapshot()
		}
		if number%10 == 9 {
			w.fail()
		} else {
			w.finish()
		}
	}
	return w.conversation
}

// Growing is one long thread with about 320 events per run. Each run begins with a snapshot of the
// state, as agent servers send it; deltas make the state grow to stateSize bytes.
func (c *Corpus) Growing(seed uint64, runs, stateSize int) Conversation {
	w := c.writer(seed, tokenSize)
	for number := range runs {
		w.begin("")
		w.stateSnapshot()
		w.step("model", func() {
			w.reasoning(250)
			w.toolCall(60, 300)
			w.changeState(0, 12)
			w.growState(stateSize * (number + 1) / runs)
			w.answer(1000)
		})
		w.finish()
	}
	return w.conversation
}

// Fifty is a thread of 50 runs. Their reasoning and answers have this number of characters in all,
// and perEvent characters in each event. Fifty(seed, 67_000, 4) has 16,000 events of one token.
func (c *Corpus) Fifty(seed uint64, characters, perEvent int) Conversation {
	const runs = 50
	w := c.writer(seed, perEvent)
	for number := range runs {
		w.begin("")
		if number == 0 {
			w.stateSnapshot()
		}
		w.step("model", func() {
			w.reasoning(characters / runs / 5)
			w.toolCall(40, 300)
			w.changeState(1, 1)
			w.answer(characters / runs * 4 / 5)
		})
		w.finish()
	}
	return w.conversation
}

// DeltaState is a growing thread whose state comes only in deltas.
func (c *Corpus) DeltaState(seed uint64, runs int) Conversation {
	w := c.writer(seed, tokenSize)
	for number := range runs {
		w.begin("")
		if number == 0 {
			w.firstState()
		}
		w.answer(200)
		w.changeState(4, 12)
		w.finish()
	}
	return w.conversation
}

// Regenerated is a thread whose user regenerated an answer many times: all runs except the first
// are children of the first. The state has about 200 KB; each run changes it a little.
func (c *Corpus) Regenerated(seed uint64, branches int) Conversation {
	const stateSize = 200_000
	w := c.writer(seed, tokenSize)
	w.fillState(stateSize)
	w.begin("")
	w.stateSnapshot()
	w.answer(600)
	w.finish()
	root := w.conversation.Runs[0].RunID
	for range branches {
		w.begin(root)
		w.answer(250)
		w.emit("STATE_DELTA", "delta", []operation{{"replace", "/steps", w.IntN(1000)}})
		w.finish()
	}
	return w.conversation
}
