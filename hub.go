package pgagui

import (
	"cmp"
	"container/list"
	"context"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pgagui/pgagui/db"
)

// hub asks the database for news of all threads that a process follows, many in one query, and hands them to the followers.
//
// A followed thread is a topic: the last events of its log, and a signal that there are more. A follower has a seq of its own and takes from the topic
// what lies behind it. One that is further back than the topic reaches reads from the database, for itself. So nobody waits for a slow follower,
// and what is live joins on to what was read without a gap or a double: both are told apart by seq alone.
type hub struct {
	queries     func(scope string) *db.Queries
	setsScope   bool // a query is for one scope
	interval    time.Duration
	callTimeout time.Duration
	outage      outage
	readers     chan struct{} // bounds how many followers read from the database at once

	mu     sync.Mutex // guards what follows, and all topics
	topics map[topicKey]*topic
	kept   list.List          // topics that keep chunks; first those that have had no news for the longest time
	bytes  int                // of all of these
	stop   context.CancelFunc // ends the asking; nil: nobody follows
	woken  chan struct{}      // a topic is due earlier than it was
}

type topicKey struct{ scope, threadID string }

// topic is what the hub knows of a thread that is followed.
type topic struct {
	key       topicKey
	followers int

	// isOpen says that the hub asks for news. Before, the first follower reads up to the end of the log, to say where news begin.
	isOpen bool
	// end is the last event that the hub knows of.
	end Position
	// chunks are the events up to end, those behind begin.
	chunks  []chunk
	bytes   int
	kept    *list.Element // its place in the hub's list; nil: it keeps no chunks
	begin   Position
	running map[string]bool // run ids
	changed chan struct{}   // closed at the next change

	due   time.Time // zero: it was woken
	pause time.Duration
	// isCut says that the last answer had no room for all of its news: it comes first in the next query.
	isCut bool
}

// chunk is a batch as followers get it.
type chunk struct {
	events []Event
	bytes  int
	// isRunning says that the run of the events had not ended when they were read. Otherwise its end is among them, before them or behind them.
	isRunning bool
}

const (
	// maxTopicBytes is how much of a thread is kept for followers that are somewhat behind, or its last chunk when that is larger; maxHubBytes how
	// much of all threads together. A follower that is further behind reads from the database.
	maxTopicBytes = 256 << 10
	maxHubBytes   = 64 << 20
	// maxTopicsPerPoll, maxBatchesPerPoll (of a thread) and maxBytesPerPoll (of all) bound a query and its answer. A batch may be larger than that: it
	// comes alone.
	maxTopicsPerPoll  = 500
	maxBatchesPerPoll = 100
	maxBytesPerPoll   = 16 << 20
	// restShare of the time the hub does nothing, however many threads there are; but never for longer than longestRest. Behind a query that
	// took no time it rests for shortestRest, so that threads that are woken meanwhile share the next one.
	restShare    = 0.8
	longestRest  = time.Second
	shortestRest = 5 * time.Millisecond
	// longestBackoff is how long the hub waits at most before it asks again a database that cannot be reached.
	longestBackoff = 2 * time.Second
	// maxReaders is how many followers read from the database at once, about pageBytes each, but minPage batches at least and maxPage at most; and
	// never more than maxPageBytes or one batch.
	maxReaders       = 4
	pageBytes        = 256 << 10
	minPage, maxPage = 10, 1000
	maxPageBytes     = 4 << 20
)

func newHub(pool DB, config *Config) *hub {
	h := &hub{
		queries:   func(scope string) *db.Queries { return queriesIn(pool, scope, config.SetScope) },
		setsScope: config.SetScope, interval: config.PollInterval, callTimeout: config.CallTimeout,
		readers: make(chan struct{}, maxReaders), topics: map[topicKey]*topic{},
		outage: outage{
			logger: config.Logger,
			lost:   "pgagui: followers get no news, they ask the database until it answers",
			still:  "pgagui: followers still get no news",
			back:   "pgagui: followers get news again",
		},
	}
	setDefault(&h.interval, 20*time.Millisecond)
	setDefault(&h.callTimeout, 30*time.Second)
	setDefault(&h.outage.logger, slog.Default())
	return h
}

// retryPolicy says how queries of followers are retried.
func (h *hub) retryPolicy() retryPolicy {
	return retryPolicy{timeout: h.callTimeout, report: h.outage.report}
}

// join returns the topic of a thread for one more follower, which must leave it in the end.
func (h *hub) join(key topicKey) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[key]
	if t == nil {
		t = &topic{key: key, changed: make(chan struct{})}
		h.topics[key] = t
	}
	t.followers++
	if h.stop == nil {
		var ctx context.Context
		ctx, h.stop = context.WithCancel(context.Background())
		h.woken = make(chan struct{}, 1)
		go h.run(ctx, h.woken)
	}
	return t
}

func (h *hub) leave(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.followers--; t.followers == 0 {
		delete(h.topics, t.key)
		h.forget(t)
	}
	if len(h.topics) == 0 { // at once, so that a query that hangs keeps no connection
		h.stop()
		h.stop = nil
	}
}

// open has the hub ask for news of a topic, behind the event to which a follower has read when it found no more.
func (h *hub) open(t *topic, end Position, running []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.isOpen {
		return
	}
	t.isOpen, t.end, t.begin, t.running = true, end, end, map[string]bool{}
	for _, runID := range running {
		t.running[runID] = true
	}
	t.pause, t.due = h.interval, time.Now()
	h.wakeUp()
}

// wake has the hub ask for news of a thread at once, if it is followed.
func (h *hub) wake(scope, threadID string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[topicKey{scope, threadID}]; t != nil && t.isOpen {
		t.due = time.Time{}
		h.wakeUp()
	}
}

func (h *hub) wakeUp() {
	select {
	case h.woken <- struct{}{}:
	default:
	}
}

// after returns the events of a topic behind a position. Without any it returns the signal that there is more; and without that either, the
// follower has to read from the database. isAhead says that the position is behind the end of the topic: the hub has not come so far yet, or
// the log was rewound since the follower was there.
func (h *hub) after(t *topic, position Position) (chunks []chunk, changed <-chan struct{}, isAhead bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !t.isOpen || position.Seq < t.begin.Seq || t.contradicts(position) {
		return nil, nil, false
	}
	if position.Seq >= t.end.Seq {
		return nil, t.changed, position.Seq > t.end.Seq
	}
	first, isSeen := t.chunkOf(position.Seq)
	if isSeen {
		first++
	}
	return slices.Clone(t.chunks[first:]), nil, false
}

// isInProgress reports whether the hub knows that a run of a topic is in progress where a follower has come to, or, when none is named, any
// of its runs. The end of that run will be news.
func (h *hub) isInProgress(t *topic, position Position, runID string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !t.isOpen || t.end.Seq < position.Seq {
		return false
	}
	return t.running[runID] || runID == "" && len(t.running) > 0
}

// chunkOf finds the first chunk that ends at a seq or behind it, and reports whether it ends there.
func (t *topic) chunkOf(seq int64) (i int, endsThere bool) {
	return slices.BinarySearchFunc(t.chunks, seq, func(c chunk, seq int64) int {
		return cmp.Compare(c.events[len(c.events)-1].Seq, seq)
	})
}

// contradicts reports whether the topic has another event where the follower has been.
func (t *topic) contradicts(position Position) bool {
	if position.RecordedAt.IsZero() {
		return false
	}
	if position.Seq == t.begin.Seq {
		return !t.begin.RecordedAt.IsZero() && !t.begin.RecordedAt.Equal(position.RecordedAt)
	}
	i, _ := t.chunkOf(position.Seq)
	if i == len(t.chunks) || t.chunks[i].events[0].Seq > position.Seq {
		return false
	}
	event := t.chunks[i].events[position.Seq-t.chunks[i].events[0].Seq]
	return !event.RecordedAt.Equal(position.RecordedAt)
}

// run polls until nobody follows any more. Should somebody follow again before it has ended, that starts another.
func (h *hub) run(ctx context.Context, woken <-chan struct{}) {
	outagePauses := pauses(2*h.interval, longestBackoff)
	for {
		due, wait := h.dueTopics(ctx)
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
		err := h.poll(ctx, due)
		// With very many threads, or a slow server, news come later, but the server has time for others.
		rest := time.Duration(float64(time.Since(begin)) * restShare / (1 - restShare))
		rest = max(min(h.interval/4, shortestRest), min(rest, longestRest))
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			h.outage.report(nil)
			outagePauses.Reset()
		case classify(err) == transient:
			h.outage.report(err)
			rest = outagePauses.NextBackOff()
		default:
			// The followers ask for themselves, and are told.
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

// dueTopics returns the topics to ask for; if there is none, how long nothing is to be done.
func (h *hub) dueTopics(ctx context.Context) (due []*topic, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return nil, 0 // the topics are those of another run
	}
	now := time.Now()
	wait = time.Hour
	var cut []*topic
	for _, t := range h.topics {
		if !t.isOpen {
			continue
		}
		left := t.due.Sub(now)
		switch {
		case t.isCut:
			cut = append(cut, t)
		case left <= h.interval/4: // together with those that are due now
			due = append(due, t)
		default:
			wait = min(wait, left)
		}
	}
	return append(cut, due...), wait
}

// poll asks for the news of topics.
func (h *hub) poll(ctx context.Context, topics []*topic) error {
	for part := range h.parts(topics) {
		var params db.PollParams
		h.mu.Lock()
		for _, t := range part {
			params.ThreadIds = append(params.ThreadIds, t.key.threadID)
			params.Scopes = append(params.Scopes, t.key.scope)
			params.AfterSeqs = append(params.AfterSeqs, t.end.Seq)
			params.AfterTimes = append(params.AfterTimes, t.end.RecordedAt)
			t.due = time.Now() // who wakes it from now on may know more than the answer
		}
		h.mu.Unlock()
		params.MaxRows, params.PageBytes = maxBatchesPerPoll, maxBytesPerPoll
		timed, cancel := context.WithTimeout(ctx, h.callTimeout)
		rows, err := h.queries(part[0].key.scope).Poll(timed, params)
		cancel()
		if err != nil {
			return err
		}
		h.take(part, rows)
	}
	return nil
}

// parts are the topics that are asked for in one query.
func (h *hub) parts(topics []*topic) iter.Seq[[]*topic] {
	if !h.setsScope {
		return slices.Chunk(topics, maxTopicsPerPoll)
	}
	return func(yield func([]*topic) bool) {
		inScopes := map[string][]*topic{}
		for _, t := range topics {
			inScopes[t.key.scope] = append(inScopes[t.key.scope], t)
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

// take hands the answer of a poll to the topics that were asked for.
func (h *hub) take(asked []*topic, rows []db.PollRow) {
	news := make([][]chunk, len(asked))
	problems := make([]bool, len(asked))
	areCut := make([]bool, len(asked))
	for _, row := range rows {
		i := row.ThreadNo - 1
		if isCut(row) {
			areCut[i] = true
			continue
		}
		events, err := eventsOf(asked[i].key.threadID, row)
		if err != nil || row.Problem != "" {
			problems[i] = true
			continue
		}
		news[i] = append(news[i], asChunk(row, events))
	}
	for i, t := range asked {
		if problems[i] {
			h.reset(t)
		} else {
			h.extend(t, news[i], areCut[i])
		}
	}
}

// isCut reports whether a row says that its thread has more than fits in the answer.
func isCut(row db.PollRow) bool { return row.Events == nil && row.Problem == "" }

// extend adds news to a topic, of which there is more when they were cut, and says when to ask again.
func (h *hub) extend(t *topic, news []chunk, isCut bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() {
		if !t.due.IsZero() && len(news) < maxBatchesPerPoll && !isCut { // otherwise there is more
			t.due = time.Now().Add(t.pause)
		}
	}()
	t.isCut = isCut
	if len(news) == 0 && isCut {
		return
	}
	if len(news) == 0 {
		// A run in progress may go on at any moment; a thread without one waits for a person.
		longest := 2 * h.interval
		if len(t.running) == 0 {
			longest = 20 * h.interval
		}
		t.pause = min(t.pause*21/20, longest)
		return
	}
	for _, c := range news {
		// By its row, for an agent may say more after its end, and begin anew.
		last := c.events[len(c.events)-1]
		if c.isRunning {
			t.running[last.RunID] = true
		} else {
			delete(t.running, last.RunID)
		}
		t.end = last.Position()
	}
	h.keep(t, news)
	t.signal()
	t.pause = h.interval
}

// keep adds chunks to those that a topic keeps, and lets go of the oldest ones. A topic that has been followed until it has none left keeps nothing.
func (h *hub) keep(t *topic, news []chunk) {
	if h.topics[t.key] != t {
		return
	}
	for _, c := range news {
		t.bytes += c.bytes
		h.bytes += c.bytes
	}
	t.chunks = append(t.chunks, news...)
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
		h.forget(h.kept.Front().Value.(*topic))
	}
}

// forget lets go of the chunks of a topic.
func (h *hub) forget(t *topic) {
	if t.kept == nil {
		return
	}
	h.kept.Remove(t.kept)
	h.bytes -= t.bytes
	t.chunks, t.bytes, t.kept, t.begin = nil, 0, nil, t.end
}

func (c chunk) end() Position { return c.events[len(c.events)-1].Position() }

// reset closes a topic that cannot go on, so that its followers ask the database and are told why.
func (h *hub) reset(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(t)
	t.isOpen = false
	t.signal()
}

func (t *topic) signal() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// read asks the database for the news of one thread behind a position, for a follower that is further back than its topic, at most so many
// batches, and reports whether there may be more.
func (h *hub) read(ctx context.Context, key topicKey, after Position, page int) (chunks []chunk, isMore bool, err error) {
	select {
	case h.readers <- struct{}{}:
		defer func() { <-h.readers }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	params := db.PollParams{
		ThreadIds: []string{key.threadID}, Scopes: []string{key.scope},
		AfterSeqs: []int64{after.Seq}, AfterTimes: []time.Time{after.RecordedAt}, MaxRows: int32(page), PageBytes: maxPageBytes,
	}
	rows, err := retry(ctx, h.retryPolicy(), func(ctx context.Context) ([]db.PollRow, error) {
		return h.queries(key.scope).Poll(ctx, params)
	})
	if err != nil {
		return nil, false, ErrorOf(err)
	}
	for _, row := range rows {
		if row.Problem != "" {
			return nil, false, cannotFollow(key, after, row.Problem)
		}
		if isCut(row) {
			return chunks, true, nil
		}
		events, err := eventsOf(key.threadID, row)
		if err != nil {
			return nil, false, err
		}
		chunks = append(chunks, asChunk(row, events))
	}
	return chunks, len(chunks) == page, nil
}

// pageLike is how many batches of the size of the given ones make a page: a follower whose caller is slow keeps them all that time.
func pageLike(chunks []chunk) int {
	bytes := 1
	for _, c := range chunks {
		bytes += c.bytes
	}
	return min(max(len(chunks)*pageBytes/bytes, minPage), maxPage)
}

func asChunk(row db.PollRow, events []Event) chunk {
	return chunk{events, len(row.Events), Status(row.Status) == Running}
}

func eventsOf(threadID string, row db.PollRow) ([]Event, error) {
	batch := batch{threadID, row.RunID, row.FirstSeq, row.RecordedAt, row.EarlierUs, row.Events}
	events := make([]Event, 0, row.N)
	for event, err := range batch.all() {
		if err != nil {
			return nil, err
		}
		events = append(events, event)
	}
	return events, nil
}
