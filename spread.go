package pgagui

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/live"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/internal/refusal"
)

// callsForMany are the calls for many threads at once. *db.Queries has them for one database.
type callsForMany interface {
	live.Database
	live.Poller
}

// forMany returns the calls for many threads at once.
func (s *Store) forMany() callsForMany {
	if s.cluster == nil {
		return s.queries
	}
	return spread{s}
}

// onLane returns the calls for many threads of one node of a cluster, for a recorder or a hub.
func (s *Store) onLane(node string) callsForMany {
	if node == "" && len(s.cluster.members) > 1 {
		return nowhere{s.cluster}
	}
	m, err := s.cluster.named(node)
	if err != nil {
		return db.New(failing{err})
	}
	return onNode{s.cluster, m, queriesIn(m.db, s.scope, s.setsScope)}
}

// split makes a call for the threads of several nodes of a cluster: a part for each node, all at the
// same time. Those of one thread stay in their order. call gets the numbers of the items of its part,
// and returns those that the node refused because another one has their threads. If the whole part is
// refused (UI027), all are. split repeats the call for these alone. It returns the errors by item.
func (s *Store) split(
	ctx context.Context, keys []live.Key, call func(ctx context.Context, on *db.Queries, m *member, items []int) (refused []int, err error),
) (failed map[int]error) {
	var mu sync.Mutex // guards what the parts write
	failed = map[int]error{}
	left := make([]int, len(keys))
	for i := range keys {
		left[i] = i
	}
	ended := again(ctx, func() (isMoved bool) {
		places := map[live.Key]*member{} // one place for all items of a thread
		parts := map[*member][]int{}
		for _, i := range left {
			delete(failed, i)
			m := places[keys[i]]
			if m == nil {
				var err error
				if m, err = s.cluster.memberOf(ctx, keys[i]); err != nil {
					failed[i] = err
					continue
				}
				places[keys[i]] = m
			}
			parts[m] = append(parts[m], i)
		}
		left = nil
		var calls sync.WaitGroup
		for m, items := range parts {
			calls.Go(panics.Task(nil, func() {
				refused, err := call(ctx, queriesIn(m.db, s.scope, s.setsScope), m, items)
				if s.cluster.noteFailure(ctx, m, err) {
					refused = items
				}
				mu.Lock()
				defer mu.Unlock()
				left = append(left, refused...)
				if err != nil {
					for _, i := range items {
						failed[i] = err
					}
				}
			}, func(err error) {
				mu.Lock()
				defer mu.Unlock()
				for _, i := range items {
					failed[i] = err
				}
			}))
		}
		calls.Wait()
		slices.Sort(left)
		return len(left) > 0
	})
	if ended != nil {
		for _, i := range left {
			failed[i] = ended
		}
	}
	return failed
}

// firstError returns the error of the first item that has one.
func firstError(failed map[int]error) error {
	if len(failed) == 0 {
		return nil
	}
	return failed[slices.Min(slices.Collect(maps.Keys(failed)))]
}

// spread makes calls for threads of several nodes.
type spread struct{ store *Store }

func (s spread) AppendMany(ctx context.Context, params db.AppendManyParams) ([]db.AppendManyRow, error) {
	answers, failed := s.appendMany(ctx, params)
	return answers, firstError(failed)
}

// appendMany returns the answers, and the errors of the calls that a node did not answer, by their
// number.
func (s spread) appendMany(ctx context.Context, params db.AppendManyParams) (answers []db.AppendManyRow, failed map[int]error) {
	var mu sync.Mutex
	answerOf := map[int]db.AppendManyRow{}
	failed = s.store.split(ctx, keysOf(params.Scopes, params.ThreadIds), func(ctx context.Context, on *db.Queries, _ *member, items []int) (refused []int, err error) {
		rows, err := on.AppendMany(ctx, db.AppendManyParams{
			ThreadIds: pick(params.ThreadIds, items), RunIds: pick(params.RunIds, items), Events: pick(params.Events, items),
			AfterSeqs: pick(params.AfterSeqs, items), Inputs: pick(params.Inputs, items), ParentRunIds: pick(params.ParentRunIds, items),
			Parallel: pick(params.Parallel, items), Scopes: pick(params.Scopes, items),
			Strict: params.Strict, Wait: params.Wait, Durable: params.Durable,
		})
		mu.Lock()
		defer mu.Unlock()
		for _, row := range rows {
			item := items[row.CallNo-1]
			row.CallNo = int32(item + 1)
			answerOf[item] = row
			if row.ErrorCode == refusal.Moved.State {
				s.store.cluster.directory.learn(row.Detail)
				refused = append(refused, item)
			}
		}
		return refused, err
	})
	for _, item := range slices.Sorted(maps.Keys(answerOf)) {
		if failed[item] == nil {
			answers = append(answers, answerOf[item])
		}
	}
	return answers, failed
}

func (s spread) KeepAlive(ctx context.Context, params db.KeepAliveParams) (signals []db.KeepAliveRow, err error) {
	var mu sync.Mutex
	failed := s.store.split(ctx, keysOf(params.Scopes, params.ThreadIds), func(ctx context.Context, on *db.Queries, _ *member, items []int) ([]int, error) {
		rows, err := on.KeepAlive(ctx, db.KeepAliveParams{
			ThreadIds: pick(params.ThreadIds, items), RunIds: pick(params.RunIds, items), Scopes: pick(params.Scopes, items), Detach: params.Detach,
		})
		mu.Lock()
		defer mu.Unlock()
		for _, row := range rows {
			row.CallNo = int32(items[row.CallNo-1] + 1)
			signals = append(signals, row)
		}
		return nil, err
	})
	return signals, firstError(failed)
}

func (s spread) Poll(ctx context.Context, params db.PollParams) (news []db.PollRow, err error) {
	var mu sync.Mutex
	rowsOf := map[int][]db.PollRow{}
	keys := keysOf(params.Scopes, params.ThreadIds)
	failed := s.store.split(ctx, keys, func(ctx context.Context, on *db.Queries, m *member, items []int) (refused []int, err error) {
		rows, err := on.Poll(ctx, db.PollParams{
			ThreadIds: pick(params.ThreadIds, items), Scopes: pick(params.Scopes, items),
			AfterSeqs: pick(params.AfterSeqs, items), AfterTimes: pick(params.AfterTimes, items),
			MaxRows: params.MaxRows, PageBytes: params.PageBytes,
		})
		mu.Lock()
		defer mu.Unlock()
		for _, item := range items {
			delete(rowsOf, item)
		}
		for _, row := range rows {
			item := items[row.ThreadNo-1]
			row.ThreadNo = int32(item + 1)
			rowsOf[item] = append(rowsOf[item], row)
			if row.Problem == refusal.Moved.State {
				// A poll does not say where the thread is: the next node is tried.
				s.store.cluster.directory.put(keys[item], s.store.cluster.after(m).name)
				refused = append(refused, item)
			}
		}
		return refused, err
	})
	for _, item := range slices.Sorted(maps.Keys(rowsOf)) {
		news = append(news, rowsOf[item]...)
	}
	return news, firstError(failed)
}

// after returns the next node, behind the last one the first.
func (c *cluster) after(m *member) *member {
	for i, other := range c.members {
		if other.name == m.name {
			return c.members[(i+1)%len(c.members)]
		}
	}
	return m
}

// onNode makes calls on one node, and learns from what it refuses. It repeats nothing.
type onNode struct {
	cluster *cluster
	member  *member
	queries *db.Queries
}

func (n onNode) AppendMany(ctx context.Context, params db.AppendManyParams) ([]db.AppendManyRow, error) {
	return callNode(ctx, n, func() ([]db.AppendManyRow, error) {
		answers, err := n.queries.AppendMany(ctx, params)
		for _, answer := range answers {
			if answer.ErrorCode == refusal.Moved.State {
				n.cluster.directory.learn(answer.Detail)
			}
		}
		return answers, err
	})
}

func (n onNode) KeepAlive(ctx context.Context, params db.KeepAliveParams) ([]db.KeepAliveRow, error) {
	return callNode(ctx, n, func() ([]db.KeepAliveRow, error) { return n.queries.KeepAlive(ctx, params) })
}

func (n onNode) Poll(ctx context.Context, params db.PollParams) ([]db.PollRow, error) {
	return callNode(ctx, n, func() ([]db.PollRow, error) { return n.queries.Poll(ctx, params) })
}

func callNode[T any](ctx context.Context, n onNode, call func() (T, error)) (answer T, err error) {
	if err = n.cluster.introduce(ctx, n.member); err == nil {
		answer, err = call()
	}
	n.cluster.noteFailure(ctx, n.member, err)
	return answer, err
}

// nowhere refuses all threads, once the map is known that says where they are.
type nowhere struct{ cluster *cluster }

func (n nowhere) AppendMany(ctx context.Context, params db.AppendManyParams) (answers []db.AppendManyRow, err error) {
	for i := range params.ThreadIds {
		answers = append(answers, db.AppendManyRow{CallNo: int32(i + 1), ErrorCode: refusal.Moved.State})
	}
	return answers, n.cluster.load(ctx)
}

func (n nowhere) KeepAlive(ctx context.Context, params db.KeepAliveParams) ([]db.KeepAliveRow, error) {
	if err := n.cluster.load(ctx); err != nil || len(params.ThreadIds) == 0 {
		return nil, err
	}
	return nil, &pgconn.PgError{Code: refusal.Moved.State, Message: "the threads are on nodes of the cluster"}
}

func (n nowhere) Poll(ctx context.Context, params db.PollParams) (news []db.PollRow, err error) {
	for i := range params.ThreadIds {
		news = append(news, db.PollRow{ThreadNo: int32(i + 1), Problem: refusal.Moved.State})
	}
	return news, n.cluster.load(ctx)
}

func keysOf(scopes, threadIDs []string) []live.Key {
	keys := make([]live.Key, len(threadIDs))
	for i := range keys {
		keys[i] = live.Key{Scope: scopes[i], ThreadID: threadIDs[i]}
	}
	return keys
}

// pick returns the items with these numbers. No list has none.
func pick[T any](list []T, items []int) (picked []T) {
	if list == nil {
		return nil
	}
	for _, i := range items {
		picked = append(picked, list[i])
	}
	return picked
}

// reply is the answer of a node.
type reply[T any] struct {
	node  string // empty: the Store is on one database
	value T
}

// gather makes a call on the database, or at the same time on all nodes of a cluster. An error that
// comes with replies is an *UnansweredError.
func gather[T any](ctx context.Context, s *Store, call func(ctx context.Context, on *db.Queries, node string) (T, error)) ([]reply[T], error) {
	if s.cluster == nil {
		value, err := call(ctx, s.queries, "")
		if err != nil {
			return nil, ErrorOf(err)
		}
		return []reply[T]{{"", value}}, nil
	}
	members := s.cluster.members
	values, errs := make([]T, len(members)), make([]error, len(members))
	var calls sync.WaitGroup
	for i, m := range members {
		calls.Go(panics.Task(nil, func() {
			if errs[i] = s.cluster.introduce(ctx, m); errs[i] == nil {
				values[i], errs[i] = call(ctx, queriesIn(m.db, s.scope, s.setsScope), m.name)
			}
		}, func(err error) { errs[i] = err }))
	}
	calls.Wait()
	var replies []reply[T]
	unanswered := &UnansweredError{map[string]error{}}
	for i, m := range members {
		err := ErrorOf(errs[i])
		switch refusal := (*Error)(nil); {
		case err == nil:
			replies = append(replies, reply[T]{m.name, values[i]})
		case errors.As(err, &refusal):
			return nil, err // the node answered
		default:
			unanswered.Nodes[m.name] = err
		}
	}
	if len(unanswered.Nodes) > 0 {
		return replies, unanswered
	}
	return replies, nil
}
