package live

import (
	"bytes"
	"cmp"
	"container/list"
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/internal/refusal"
)

// Hub polls the database for new events of all threads that a process follows, many in one query,
// and passes them to the followers.
//
// A followed thread is a topic: the last events of its log, and a signal that there are more. Each
// follower has its own position and takes the events behind it from the topic. A follower that is
// further back than the topic reads from the database itself. So no follower waits for a slow one,
// and live events join those that were read without a gap or a double, because seq alone decides.
//
// Of a cluster it polls each node by itself, so that one that does not answer holds up only the
// followers of its threads.
type Hub struct {
	config HubConfig

	mu      sync.Mutex // guards the fields below, and all topics
	topics  map[Key]*Topic
	kept    list.List // topics that keep chunks, the one without new events for the longest time first
	bytes   int       // of the chunks of all topics
	lanes   map[string]*hubLane
	polling context.Context    // ends with the last follower
	stop    context.CancelFunc // ends the polling; nil: there are no followers
}

// hubLane is a database that is polled by itself.
type hubLane struct {
	name    string
	outage  outage
	readers chan struct{}   // bounds the followers that read from the database at once
	woken   chan struct{}   // a topic became due earlier
	polled  context.Context // the Hub.polling for which it is being polled; nil: it is not
}

// Topic is a thread that is followed.
type Topic struct {
	key       Key
	followers int
	lane      *hubLane // that of the thread when the topic was opened

	// isOpen is true if the hub polls for new events. Before, the first follower reads up to the
	// end of the log, and so finds where they begin.
	isOpen bool
	// end is the last event that the hub has seen.
	end Position
	// chunks are the events behind begin, up to end.
	chunks  []Chunk
	bytes   int
	kept    *list.Element // its element of hub.kept; nil: it keeps no chunks
	begin   Position
	running map[string]bool // run ids
	changed chan struct{}   // closed at the next change

	due   time.Time // zero: it was woken
	pause time.Duration
	// isCut is true if the last answer had no room for all new events. Then the topic comes first
	// in the next query.
	isCut bool
}

// Chunk is a batch in the form for followers.
type Chunk struct {
	Events []Event
	bytes  int
	// isRunning is true if the run of the events had not ended when they were read. Otherwise its
	// end is among them, before them or behind them.
	isRunning bool
}

const (
	// maxTopicBytes bounds the chunks of a topic for followers that are slightly behind; the last
	// chunk may be larger. maxHubBytes bounds those of all topics. A follower that is further
	// behind reads from the database.
	maxTopicBytes = 256 << 10
	maxHubBytes   = 64 << 20
	// maxTopicsPerPoll, maxBatchesPerPoll (of a thread) and maxBytesPerPoll (of all threads) bound
	// a query and its answer. A larger batch comes alone.
	maxTopicsPerPoll  = 500
	maxBatchesPerPoll = 100
	maxBytesPerPoll   = 16 << 20
	// storedPause is the pause before the next poll of a topic that gets its events from a recorder
	// of this process, in intervals.
	storedPause = 10
	// restShare is the share of the time in which the hub does not poll, however many threads there
	// are. A rest is at most longestRest. After a query that took no time it is shortestRest, so
	// that threads that wake meanwhile share the next query.
	restShare    = 0.8
	longestRest  = time.Second
	shortestRest = 5 * time.Millisecond
	// longestBackoff bounds the pauses between polls while the database cannot be reached.
	longestBackoff = 2 * time.Second
	// maxReaders bounds the followers that read from the database at once. Each reads about
	// pageBytes: between MinPage and maxPage batches, and at most maxPageBytes or one batch.
	maxReaders       = 4
	pageBytes        = 256 << 10
	MinPage, maxPage = 10, 1000
	maxPageBytes     = 4 << 20
)

// HubConfig holds what a hub needs.
type HubConfig struct {
	// Calls returns those for the threads of a scope. If SetsScope is set, a query is for one scope,
	// otherwise for all of them.
	Calls     func(scope string) Calls
	SetsScope bool
	Lanes     Lanes // nil: one database
	// Interval is how often the hub polls while a run streams. 20 ms if zero.
	Interval time.Duration
	// CallTimeout is how long a query waits for its answer. 30 seconds if zero.
	CallTimeout time.Duration
	// Logger gets a line when the database cannot be reached. slog.Default() if nil.
	Logger *slog.Logger
}

// NewHub returns a hub without followers. It polls, and has a goroutine, while it has some.
func NewHub(config HubConfig) *Hub {
	config.Interval = cmp.Or(config.Interval, 20*time.Millisecond)
	config.CallTimeout = cmp.Or(config.CallTimeout, 30*time.Second)
	config.Logger = cmp.Or(config.Logger, slog.Default())
	return &Hub{config: config, topics: map[Key]*Topic{}, lanes: map[string]*hubLane{}}
}

// laneOf returns the lane of a thread. The caller holds the lock.
func (h *Hub) laneOf(key Key) *hubLane {
	name := laneOf(h.config.Lanes, key)
	l := h.lanes[name]
	if l == nil {
		l = &hubLane{
			name: name, readers: make(chan struct{}, maxReaders), woken: make(chan struct{}, 1),
			outage: outage{
				logger: h.config.Logger,
				lost:   "pgagui: followers get no new events, they retry until the database answers",
				still:  "pgagui: followers still get no new events",
				back:   "pgagui: followers get new events again",
			},
		}
		if name != "" {
			l.outage.logger = l.outage.logger.With("node", name)
		}
		h.lanes[name] = l
	}
	return l
}

// Interval is how often the hub polls while a run streams.
func (h *Hub) Interval() time.Duration { return h.config.Interval }

// RetryPolicy says how queries of the followers of a thread are retried.
func (h *Hub) RetryPolicy(key Key) RetryPolicy {
	h.mu.Lock()
	defer h.mu.Unlock()
	return RetryPolicy{Timeout: h.config.CallTimeout, report: h.laneOf(key).outage.report}
}

// Join returns the topic of a thread for one more follower, which must call leave in the end.
func (h *Hub) Join(key Key) *Topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[key]
	if t == nil {
		t = &Topic{key: key, changed: make(chan struct{})}
		h.topics[key] = t
	}
	t.followers++
	if h.stop == nil {
		h.polling, h.stop = context.WithCancel(context.Background())
	}
	return t
}

func (h *Hub) Leave(t *Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.followers--; t.followers == 0 {
		delete(h.topics, t.key)
		h.forget(t)
	}
	if len(h.topics) == 0 { // at once, so that a query that hangs holds no connection
		h.stop()
		h.stop = nil
	}
}

// Open makes the hub poll for new events of a topic, behind end, where a follower found no more.
func (h *Hub) Open(t *Topic, end Position, running []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.isOpen {
		return
	}
	t.isOpen, t.end, t.begin, t.running = true, end, end, map[string]bool{}
	for _, runID := range running {
		t.running[runID] = true
	}
	t.pause, t.due = h.config.Interval, time.Now()
	t.lane = h.laneOf(t.key)
	if t.lane.polled != h.polling {
		t.lane.polled, t.lane.woken = h.polling, make(chan struct{}, 1) // another run may still be reading the one before
		polling, l, woken := h.polling, t.lane, t.lane.woken
		go panics.Task(l.outage.logger, func() { h.run(polling, l, woken) }, nil)()
	}
	wakeUp(t.lane.woken)
}

// Wake makes the hub poll at once for new events of a thread, if it is followed.
func (h *Hub) Wake(key Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[key]; t != nil && t.isOpen {
		h.pollNow(t)
	}
}

// pollNow makes the hub poll for a topic at once. The caller holds the lock.
func (h *Hub) pollNow(t *Topic) {
	t.due = time.Time{}
	wakeUp(t.lane.woken)
}

// Stored passes events that this process has stored to the followers of their thread, if it is
// followed and the events come next there. Otherwise, and if the position has no time, the hub polls
// at once.
func (h *Hub) Stored(key Key, runID string, stored []json.RawMessage, last Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[key]
	if t == nil || !t.isOpen {
		return
	}
	first := last.Seq - int64(len(stored)) + 1
	if last.RecordedAt.IsZero() || t.end.Seq != first-1 || last.RecordedAt.Before(t.end.RecordedAt) {
		h.pollNow(t)
		return
	}
	added := Chunk{Events: make([]Event, len(stored)), isRunning: true}
	for i, event := range stored {
		event = bytes.TrimSpace(event)
		added.Events[i] = Event{Seq: first + int64(i), RunID: runID, Type: compaction.EventType(event), RecordedAt: last.RecordedAt, JSON: event}
		added.bytes += len(event)
	}
	h.add(t, []Chunk{added})
	// Only what other processes append is left to the poll.
	t.due = time.Now().Add(storedPause * h.config.Interval)
}

// After returns the events of a topic behind a position. If there are none, it returns the signal
// for new events. If it returns neither, the follower must read from the database. isAhead is true
// if the position is behind the end of the topic: the hub lags, or the log was rewound since.
func (h *Hub) After(t *Topic, position Position) (chunks []Chunk, changed <-chan struct{}, isAhead bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !t.isOpen || position.Seq < t.begin.Seq || t.contradicts(position) {
		return nil, nil, false
	}
	if position.Seq >= t.end.Seq {
		return nil, t.changed, position.Seq > t.end.Seq
	}
	first, isSeen := t.chunkAt(position.Seq)
	if isSeen {
		first++
	}
	return slices.Clone(t.chunks[first:]), nil, false
}

// IsInProgress reports whether a run of a topic is in progress at a follower's position, as far as
// the hub has seen. If runID is empty, any run of the topic. The end of that run will be a new
// event.
func (h *Hub) IsInProgress(t *Topic, position Position, runID string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !t.isOpen || t.end.Seq < position.Seq {
		return false
	}
	return t.running[runID] || runID == "" && len(t.running) > 0
}

// chunkAt finds the first chunk that ends at a seq or behind it. endsThere is true if it ends at
// it.
func (t *Topic) chunkAt(seq int64) (i int, endsThere bool) {
	return slices.BinarySearchFunc(t.chunks, seq, func(c Chunk, seq int64) int {
		return cmp.Compare(c.Events[len(c.Events)-1].Seq, seq)
	})
}

// contradicts reports whether the topic has another event at the position.
func (t *Topic) contradicts(position Position) bool {
	if position.RecordedAt.IsZero() {
		return false
	}
	if position.Seq == t.begin.Seq {
		return !t.begin.RecordedAt.IsZero() && !t.begin.RecordedAt.Equal(position.RecordedAt)
	}
	i, _ := t.chunkAt(position.Seq)
	if i == len(t.chunks) || t.chunks[i].Events[0].Seq > position.Seq {
		return false
	}
	event := t.chunks[i].Events[position.Seq-t.chunks[i].Events[0].Seq]
	return !event.RecordedAt.Equal(position.RecordedAt)
}

// run polls a lane until there are no followers. A follower that joins before run has ended starts
// another run.
func (h *Hub) run(ctx context.Context, l *hubLane, woken <-chan struct{}) {
	outagePauses := Pauses(2*h.config.Interval, longestBackoff)
	for {
		due, wait := h.dueTopics(ctx, l)
		if due == nil {
			select {
			case <-time.After(wait):
			case <-woken:
			case <-ctx.Done():
				return
			}
			continue
		}
		begin := time.Now()
		err := panics.Catch(l.outage.logger, func() error { return h.poll(ctx, l, due) })
		// With very many threads, or a slow server, events arrive later, but the server has time
		// for other work.
		rest := time.Duration(float64(time.Since(begin)) * restShare / (1 - restShare))
		rest = max(min(h.config.Interval/4, shortestRest), min(rest, longestRest))
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			l.outage.report(nil)
			outagePauses.Reset()
		case classify(err) == refusal.Transient:
			l.outage.report(err)
			rest = outagePauses.NextBackOff()
		default:
			// The followers read from the database, and get the error.
			for _, t := range due {
				h.reset(t)
			}
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return
		}
	}
}

// dueTopics returns the topics of a lane to poll for. If there are none, wait is how long to wait.
func (h *Hub) dueTopics(ctx context.Context, l *hubLane) (due []*Topic, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return nil, 0 // the topics belong to another run
	}
	now := time.Now()
	wait = time.Hour
	var cut []*Topic
	for _, t := range h.topics {
		if !t.isOpen || t.lane != l {
			continue
		}
		left := t.due.Sub(now)
		switch {
		case t.isCut:
			cut = append(cut, t)
		case left <= h.config.Interval/4: // poll it together with those that are due now
			due = append(due, t)
		default:
			wait = min(wait, left)
		}
	}
	return append(cut, due...), wait
}

// poll queries the new events of topics of a lane.
func (h *Hub) poll(ctx context.Context, l *hubLane, topics []*Topic) error {
	for part := range h.parts(topics) {
		var params db.PollParams
		h.mu.Lock()
		for _, t := range part {
			params.ThreadIds = append(params.ThreadIds, t.key.ThreadID)
			params.Scopes = append(params.Scopes, t.key.Scope)
			params.AfterSeqs = append(params.AfterSeqs, t.end.Seq)
			params.AfterTimes = append(params.AfterTimes, t.end.RecordedAt)
			t.due = time.Now() // a wake from now on may be newer than the answer
		}
		h.mu.Unlock()
		params.MaxRows, params.PageBytes = maxBatchesPerPoll, maxBytesPerPoll
		timed, cancel := context.WithTimeout(ctx, h.config.CallTimeout)
		rows, err := h.onLane(l, part[0].key.Scope).Poll(timed, params)
		cancel()
		if err != nil {
			return err
		}
		h.take(part, rows)
	}
	return nil
}

// onLane returns where to query the threads of a lane.
func (h *Hub) onLane(l *hubLane, scope string) Calls {
	if h.config.Lanes == nil {
		return h.config.Calls(scope)
	}
	return h.config.Lanes.OnLane(l.name, scope)
}

// parts splits topics into those of one query each.
func (h *Hub) parts(topics []*Topic) iter.Seq[[]*Topic] {
	if !h.config.SetsScope {
		return slices.Chunk(topics, maxTopicsPerPoll)
	}
	return func(yield func([]*Topic) bool) {
		inScopes := map[string][]*Topic{}
		for _, t := range topics {
			inScopes[t.key.Scope] = append(inScopes[t.key.Scope], t)
		}
		for _, inScope := range inScopes {
			for part := range slices.Chunk(inScope, maxTopicsPerPoll) {
				if !yield(part) {
					return
				}
			}
		}
	}
}

// take passes the answer of a poll to its topics.
func (h *Hub) take(topics []*Topic, rows []db.PollRow) {
	added := make([][]Chunk, len(topics))
	problems := make([]bool, len(topics))
	areCut := make([]bool, len(topics))
	for _, row := range rows {
		i := row.ThreadNo - 1
		if isCut(row) {
			areCut[i] = true
			continue
		}
		c, err := chunkOf(topics[i].key, row)
		if err != nil || row.Problem != "" {
			problems[i] = true
			continue
		}
		added[i] = append(added[i], c)
	}
	for i, t := range topics {
		if problems[i] {
			h.reset(t)
		} else {
			h.extend(t, added[i], areCut[i])
		}
	}
}

// isCut reports whether a row says that the answer had no room for all events of its thread.
func isCut(row db.PollRow) bool { return row.Events == nil && row.Problem == "" }

// extend adds new events to a topic, and sets when to poll for the next ones. isCut is true if
// there are more already.
func (h *Hub) extend(t *Topic, added []Chunk, isCut bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	isMore := len(added) == maxBatchesPerPoll || isCut
	defer func() {
		if !t.due.IsZero() && !isMore {
			t.due = time.Now().Add(t.pause)
		}
	}()
	t.isCut = isCut
	// A recorder of this process may have added some since the query began.
	added = slices.DeleteFunc(added, func(c Chunk) bool { return c.end().Seq <= t.end.Seq })
	if len(added) == 0 && isCut {
		return
	}
	if len(added) == 0 {
		// A run in progress may send events soon; a thread without one waits for a person.
		longest := 2 * h.config.Interval
		if len(t.running) == 0 {
			longest = 20 * h.config.Interval
		}
		t.pause = min(t.pause*21/20, longest)
		return
	}
	h.add(t, added)
	t.pause = h.config.Interval
}

// add passes new events to the followers of a topic. The caller holds the lock.
func (h *Hub) add(t *Topic, added []Chunk) {
	for _, c := range added {
		// The row decides, because an agent may send events after the end, and a second
		// RUN_STARTED.
		last := c.Events[len(c.Events)-1]
		if c.isRunning {
			t.running[last.RunID] = true
		} else {
			delete(t.running, last.RunID)
		}
		t.end = last.Position()
	}
	h.keep(t, added)
	t.signal()
}

// keep adds chunks to those that a topic keeps, and drops the oldest ones. A topic that has lost
// its last follower meanwhile keeps none.
func (h *Hub) keep(t *Topic, added []Chunk) {
	if h.topics[t.key] != t {
		return
	}
	for _, c := range added {
		t.bytes += c.bytes
		h.bytes += c.bytes
	}
	t.chunks = append(t.chunks, added...)
	if t.kept == nil {
		t.kept = h.kept.PushBack(t)
	} else {
		h.kept.MoveToBack(t.kept)
	}
	drop := 0
	for ; drop < len(t.chunks)-1 && t.bytes > maxTopicBytes; drop++ {
		t.bytes -= t.chunks[drop].bytes
		h.bytes -= t.chunks[drop].bytes
		t.begin = t.chunks[drop].end()
	}
	t.chunks = slices.Delete(t.chunks, 0, drop)
	for h.bytes > maxHubBytes {
		h.forget(h.kept.Front().Value.(*Topic))
	}
}

// forget drops the chunks of a topic.
func (h *Hub) forget(t *Topic) {
	if t.kept == nil {
		return
	}
	h.kept.Remove(t.kept)
	h.bytes -= t.bytes
	t.chunks, t.bytes, t.kept, t.begin = nil, 0, nil, t.end
}

func (c Chunk) end() Position { return c.Events[len(c.Events)-1].Position() }

// reset closes a topic after an error, so that its followers read from the database and get the
// error.
func (h *Hub) reset(t *Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(t)
	t.isOpen = false
	t.signal()
}

func (t *Topic) signal() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// Problem says that a thread cannot be followed from a position: its log was rewound, it was
// erased, or another thread has its key.
type Problem struct{ SQLState string }

func (p *Problem) Error() string { return "the thread cannot be followed from there: " + p.SQLState }

// Read queries the events of one thread behind a position, at most page batches, for a follower
// that is further back than its topic. isMore is true if there may be more.
// The error may be a *Problem.
func (h *Hub) Read(ctx context.Context, key Key, after Position, page int) (chunks []Chunk, isMore bool, err error) {
	h.mu.Lock()
	l := h.laneOf(key)
	h.mu.Unlock()
	select {
	case l.readers <- struct{}{}:
		defer func() { <-l.readers }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	params := db.PollParams{
		ThreadIds: []string{key.ThreadID}, Scopes: []string{key.Scope},
		AfterSeqs: []int64{after.Seq}, AfterTimes: []time.Time{after.RecordedAt}, MaxRows: int32(page), PageBytes: maxPageBytes,
	}
	rows, err := Retry(ctx, h.RetryPolicy(key), func(ctx context.Context) ([]db.PollRow, error) {
		return h.config.Calls(key.Scope).Poll(ctx, params)
	})
	if err != nil {
		return nil, false, err
	}
	for _, row := range rows {
		if row.Problem != "" {
			return nil, false, &Problem{row.Problem}
		}
		if isCut(row) {
			return chunks, true, nil
		}
		c, err := chunkOf(key, row)
		if err != nil {
			return nil, false, err
		}
		chunks = append(chunks, c)
	}
	return chunks, len(chunks) == page, nil
}

// PageLike returns how many batches of the size of the given ones make a page. A follower with a
// slow caller holds a page in memory all that time.
func PageLike(chunks []Chunk) int {
	bytes := 1
	for _, c := range chunks {
		bytes += c.bytes
	}
	return min(max(len(chunks)*pageBytes/bytes, MinPage), maxPage)
}

const statusRunning = "running"

func chunkOf(key Key, row db.PollRow) (Chunk, error) {
	batch := Batch{key.ThreadID, row.RunID, row.FirstSeq, row.RecordedAt, row.EarlierUs, row.Events}
	c := Chunk{Events: make([]Event, 0, row.N), bytes: len(row.Events), isRunning: row.Status == statusRunning}
	for event, err := range batch.All() {
		if err != nil {
			return Chunk{}, err
		}
		c.Events = append(c.Events, event)
	}
	return c, nil
}
