package core

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/protocol"
	"github.com/pgagui/pgagui/server/internal/jsontext"
)

// MessageFeed reads the messages of a conversation in the order of their seqs, each once it is
// complete. The seq of a message is that of its first event, so a message waits for those that
// began before it: a client that has seen a seq has seen all messages up to it.
type MessageFeed struct {
	from     Tenant
	threadID string
	after    int64 // the seq of the last message that was read

	head     *pgagui.RunStatus // nil: the thread has no run
	position pgagui.Position   // of the last event that was examined
	// open are, for each run in progress, the seqs at which what is open began, by kind and id.
	open map[string]map[string]int64
	// chunks are, for each run and subagent, what its stream of chunks has open.
	chunks    map[[2]string]string
	isChanged bool // a message may be complete since the last read
}

// NewMessageFeed returns the messages of a thread behind a seq.
//
// Errors: those of Store.Status. With ErrUnknownThread the feed can be used: it waits for the thread.
func NewMessageFeed(ctx context.Context, from Tenant, threadID string, after int64) (*MessageFeed, error) {
	f := &MessageFeed{from: from, threadID: threadID, after: after, open: map[string]map[string]int64{}, chunks: map[[2]string]string{}, isChanged: true}
	var err error
	if f.head, err = from.Status(ctx, pgagui.RunRef{ThreadID: threadID}); err != nil {
		return f, err
	}
	f.position.Seq = f.head.LastSeq
	if f.head.Status != pgagui.Running {
		return f, nil
	}
	for event, err := range from.Events(ctx, threadID, pgagui.EventsOptions{RunID: f.head.RunID, NoLineage: true}) {
		if err != nil {
			return f, err
		}
		f.examine(event)
	}
	return f, nil
}

// examine takes note of what an event opens and closes.
func (f *MessageFeed) examine(event pgagui.Event) {
	f.position = event.Position()
	does, part, names := protocol.RoleOf(event.Type)
	isMessage := part == "text" || part == "tool"
	switch {
	case isMessage && does == "start":
		f.begin(event, part+" "+textMember(event.JSON, names))
	case isMessage && does == "end":
		f.end(event.RunID, part+" "+textMember(event.JSON, names))
	case isMessage && does == "chunk":
		f.chunk(event, part, textMember(event.JSON, names))
	case does == "finish run", does == "fail run":
		delete(f.open, event.RunID)
		maps.DeleteFunc(f.chunks, func(lane [2]string, _ string) bool { return lane[0] == event.RunID })
		f.isChanged = true
	case does == "start run", does == "add result", does == "list messages":
		f.isChanged = true
	}
}

func (f *MessageFeed) begin(event pgagui.Event, what string) {
	if f.open[event.RunID] == nil {
		f.open[event.RunID] = map[string]int64{}
	}
	if _, isOpen := f.open[event.RunID][what]; !isOpen {
		f.open[event.RunID][what] = event.Seq
	}
}

func (f *MessageFeed) end(runID, what string) {
	delete(f.open[runID], what)
	f.isChanged = true
}

// chunk opens what a chunk names, and ends what the chunks before it had open. A chunk without an id
// continues that.
func (f *MessageFeed) chunk(event pgagui.Event, kind, id string) {
	lane := [2]string{event.RunID, textMember(event.JSON, "subagentRunId")}
	what := kind + " " + id
	if id == "" || f.chunks[lane] == what {
		return
	}
	if before, isOpen := f.chunks[lane]; isOpen {
		f.end(event.RunID, before)
	}
	f.chunks[lane] = what
	f.begin(event, what)
}

// Read returns the messages that are complete, and that it has not returned before.
func (f *MessageFeed) Read(ctx context.Context) ([]pgagui.SessionMessage, error) {
	if !f.isChanged || f.position.Seq == 0 {
		return nil, nil
	}
	var err error
	if f.head, err = f.from.Status(ctx, pgagui.RunRef{ThreadID: f.threadID}); err != nil {
		return nil, err
	}
	if f.head.FirstSeq > f.position.Seq { // its events come next
		return nil, nil
	}
	f.isChanged = false
	stored, err := f.from.SessionMessages(ctx, f.threadID, pgagui.SessionMessagesOptions{
		At: pgagui.At{RunID: f.head.RunID, Seq: f.position.Seq}, AfterSeq: f.after,
	})
	if err != nil {
		return nil, err
	}
	for _, began := range f.open[f.head.RunID] {
		stored = slices.DeleteFunc(stored, func(message pgagui.SessionMessage) bool { return message.Seq >= began })
	}
	// Those whose first event is not in the log come first: no seq is behind them.
	slices.SortStableFunc(stored, func(a, b pgagui.SessionMessage) int { return cmp.Compare(a.Seq, b.Seq) })
	if len(stored) > 0 {
		f.after = max(f.after, stored[len(stored)-1].Seq)
	}
	return stored, nil
}

// Follow passes on the messages until ctx ends or one of the functions returns false. idle is called
// after a pause without an event.
func (f *MessageFeed) Follow(ctx context.Context, pass func([]pgagui.SessionMessage) bool, idle func() bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	readNew := func() {
		messages, err := f.Read(ctx)
		if err == nil && !pass(messages) {
			err = errLeft
		}
		if err != nil {
			cancel(err)
		}
	}
	options := pgagui.FollowOptions{After: f.position, Stay: true, Heartbeat: f.from.server.Options.Heartbeat, OnIdle: readNew}
	for event, err := range f.from.Follow(ctx, f.threadID, options) {
		switch {
		case errors.Is(context.Cause(ctx), errLeft):
			return nil
		case err != nil:
			return cmp.Or(context.Cause(ctx), err)
		case !event.IsHeartbeat():
			f.examine(event)
		case !idle():
			return nil
		}
	}
	return nil
}

// errLeft ends a stream whose client takes no more.
var errLeft = errors.New("the client is gone")

// textMember returns the value of a member of an event. Empty if it is no string.
func textMember(event []byte, name string) (text string) {
	for member, value := range compaction.Members(event) {
		if member == name {
			text, _ = jsontext.ReadString(value)
		}
	}
	return text
}
