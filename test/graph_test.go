package test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// channelValue is a value of a channel of a graph, as a call brings it and as a read returns it.
type channelValue struct {
	channel, version, kind string
	text                   string // JSON, or the bytes if kind is not json
}

func (v channelValue) argument() string {
	if v.kind == "json" {
		return v.text
	}
	return `"` + base64.StdEncoding.EncodeToString([]byte(v.text)) + `"`
}

// graphModel is what the store of a graph must hold.
type graphModel struct {
	values map[[3]string]channelValue      // by namespace, channel and version: the first one stays
	tuples map[[2]string]*modelTuple       // by namespace and id
	writes map[[2]string]map[string]string // by namespace and id, then by path, task and place
}

type modelTuple struct {
	parent, document, metadata string
	versions                   map[string]string
	step                       int
}

// Graphs with random checkpoints, values of all kinds, branches, repeats and writes that come first: what is read is what was put,
// byte for byte.
func TestGraphCheckpointsComeBackByteForByte(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			thread := fmt.Sprint("thread ", seed)
			model := graphModel{map[[3]string]channelValue{}, map[[2]string]*modelTuple{}, map[[2]string]map[string]string{}}
			lists := map[string][]string{}
			for step := range 60 {
				namespace := []string{"", "", "", "child:1"}[random.IntN(4)]
				// Some ids are put more than once, and parents may be missing or come later.
				id := fmt.Sprintf("%03d", max(0, step-random.IntN(4)*random.IntN(2)))
				parent := fmt.Sprintf("%03d", max(0, step-1-random.IntN(8)))
				if random.IntN(3) == 0 {
					model.putWrites(t, pool, random, thread, namespace, id, lists)
				}
				if random.IntN(8) > 0 && parent != id {
					model.put(t, pool, random, thread, namespace, id, parent, lists, step)
				}
			}
			model.compare(t, pool, thread)
			copied := thread + " copied"
			if n := testdb.Ask[int](t, pool, `select agui.copy_checkpoints($1, $2)`, thread, copied); n != len(model.tuples) {
				t.Errorf("%d checkpoints were copied, want %d", n, len(model.tuples))
			}
			model.compare(t, pool, copied)
			model.removeRuns(t, pool, random, copied)
			model.compare(t, pool, copied)
			model.prune(t, pool, copied)
			model.compare(t, pool, copied)
			for _, thread := range []string{thread, copied} {
				if problems := testdb.List[string](t, pool, `select problem from agui.verify($1) where severity = 'damage'`, thread); len(problems) > 0 {
					t.Errorf("%s: damage: %s", thread, problems)
				}
			}
			// What no checkpoint needs is gone.
			if left := testdb.Ask[int](t, pool, `select count(*) from agui.channel_part where thread_key = agui.thread_key('', $1) and body::text not in (
				select element::text from agui.checkpoint_contents($1), json_array_elements(case when json_typeof(body) = 'array' then body end) as element)
				and not exists (select from agui.checkpoint join agui.checkpoint_write as written using (thread_key, checkpoint_no)
					where thread_key = agui.thread_key('', $1) and document is null)`, copied); left > 0 {
				t.Errorf("%d parts that no value has are left", left)
			}
		})
	}
}

// removeRuns removes the checkpoints of two of the five runs, whose numbers are those of the steps modulo five.
func (m *graphModel) removeRuns(t *testing.T, pool *pgxpool.Pool, random *rand.Rand, thread string) {
	t.Helper()
	first := random.IntN(4)
	removed := 0
	for key, tuple := range m.tuples {
		if run := tuple.step % 5; run == first || run == first+1 {
			m.forget(key)
			removed++
		}
	}
	runs := []string{fmt.Sprint("run ", first), fmt.Sprint("run ", first+1)}
	if n := testdb.Ask[int](t, pool, `select agui.remove_run_checkpoints($1, $2)`, runs, thread); n != removed {
		t.Errorf("%d checkpoints of runs were removed, want %d", n, removed)
	}
}

// prune leaves the newest of each namespace.
func (m *graphModel) prune(t *testing.T, pool *pgxpool.Pool, thread string) {
	t.Helper()
	newest := map[string]string{}
	for key := range m.tuples {
		newest[key[0]] = max(newest[key[0]], key[1])
	}
	removed := 0
	for key := range m.tuples {
		if newest[key[0]] != key[1] {
			m.forget(key)
			removed++
		}
	}
	if n := testdb.Ask[int](t, pool, `select agui.prune_checkpoints($1)`, thread); n != removed {
		t.Errorf("%d checkpoints were pruned, want %d", n, removed)
	}
}

func (m *graphModel) forget(key [2]string) {
	delete(m.tuples, key)
	delete(m.writes, key)
}

// randomValue returns JSON of some kind, mostly a list that grows, shrinks and changes.
func randomValue(random *rand.Rand, lists map[string][]string, name string) (kind, text string) {
	switch random.IntN(8) {
	case 0:
		return "bytes", string([]byte{0, 255, byte(random.IntN(256)), '"', '\\'})
	case 1:
		return "json", []string{`null`, `""`, `"\u0000\ud800"`, `{}`, `[]`, `[ 1 , 2 ]`, `-0.0`, `1e400`, `{"a": 1, "a":2}`, `[[[]]]`}[random.IntN(10)]
	}
	elements := slices.Clone(lists[name])
	for range 1 + random.IntN(3) {
		element := fmt.Sprintf(`{"id":%d,"text":"%s \u0000 😀 %s"}`, random.IntN(40), strings.Repeat("x", random.IntN(300)), []string{`\ud83d`, `\\`, ``, `a\"b`}[random.IntN(4)])
		switch at := random.IntN(len(elements) + 1); random.IntN(6) {
		case 0:
			elements = slices.Insert(elements, at, element)
		case 1:
			elements = slices.Delete(elements, at, min(at+1, len(elements)))
		case 2:
			slices.Reverse(elements)
		case 3:
			elements = append(elements, elements...)[:min(2*len(elements), 30)]
		default:
			elements = append(elements, element)
		}
	}
	lists[name] = elements
	separator := ","
	if random.IntN(12) == 0 {
		separator = ", "
	}
	return "json", "[" + strings.Join(elements, separator) + "]"
}

func (m *graphModel) put(t *testing.T, pool *pgxpool.Pool, random *rand.Rand, thread, namespace, id, parent string, lists map[string][]string, step int) {
	t.Helper()
	tuple := &modelTuple{versions: map[string]string{}, step: step, metadata: fmt.Sprintf(`{"step": %d, "even":%t,"odd key \u0000":"\ud800"}`, step, step%2 == 0)}
	if random.IntN(10) > 0 {
		tuple.parent = parent
	}
	if before := m.tuples[[2]string{namespace, parent}]; before != nil {
		maps.Copy(tuple.versions, before.versions)
	}
	var changed []channelValue
	for _, channel := range []string{"messages", "state", "a \"strange\" ' channel\\"} {
		if random.IntN(2) == 0 {
			version := fmt.Sprint(random.IntN(30))
			kind, text := randomValue(random, lists, channel)
			changed = append(changed, channelValue{channel, version, kind, text})
			tuple.versions[channel] = version
			if key := [3]string{namespace, channel, version}; m.values[key].kind == "" {
				m.values[key] = changed[len(changed)-1]
			}
		}
	}
	versions, _ := json.Marshal(tuple.versions)
	tuple.document = fmt.Sprintf(`{"v": 4, "id":%q, "channel_versions":%s, "versions_seen":{"\u0000":{}}}`, id, versions)
	var channels, numbers, kinds, values []string
	for _, value := range changed {
		channels, numbers, kinds, values = append(channels, value.channel), append(numbers, value.version), append(kinds, value.kind), append(values, value.argument())
	}
	var parentID any
	if tuple.parent != "" {
		parentID = tuple.parent
	}
	testdb.Exec(t, pool, `select agui.put_checkpoint($1, $2, $3, $4, $5, coalesce($6::text[], '{}'), coalesce($7::text[], '{}'), coalesce($8::text[], '{}'), $9::json, namespace => $10, run_id => $11)`,
		thread, id, tuple.document, tuple.metadata, parentID, channels, numbers, kinds, "["+strings.Join(values, ",")+"]", namespace, fmt.Sprint("run ", step%5))
	m.tuples[[2]string{namespace, id}] = tuple
}

func (m *graphModel) putWrites(t *testing.T, pool *pgxpool.Pool, random *rand.Rand, thread, namespace, id string, lists map[string][]string) {
	t.Helper()
	task, path := fmt.Sprint("task ", random.IntN(3)), fmt.Sprint("path ", random.IntN(2))
	key := [2]string{namespace, id}
	if m.writes[key] == nil {
		m.writes[key] = map[string]string{}
	}
	var channels, kinds, values []string
	var places []int
	for place := range 1 + random.IntN(3) {
		kind, text := randomValue(random, lists, "messages")
		if random.IntN(5) == 0 {
			place = -1 - place
		}
		channel := fmt.Sprint("channel ", random.IntN(2))
		channels, kinds, places = append(channels, channel), append(kinds, kind), append(places, place)
		values = append(values, channelValue{kind: kind, text: text}.argument())
		write := fmt.Sprintf("%s|%s|%d|", path, task, place)
		// The path is not part of the key.
		for other := range m.writes[key] {
			if strings.HasSuffix(other, fmt.Sprintf("|%s|%d|", task, place)) {
				if place >= 0 {
					write = ""
				} else {
					delete(m.writes[key], other)
				}
			}
		}
		if write != "" {
			m.writes[key][write] = channel + "|" + kind + "|" + text
		}
	}
	testdb.Exec(t, pool, `select agui.put_checkpoint_writes($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		thread, id, task, channels, kinds, "["+strings.Join(values, ",")+"]", places, path, namespace)
}

// compare reads all checkpoints in pages, and each alone.
func (m *graphModel) compare(t *testing.T, pool *pgxpool.Pool, thread string) {
	t.Helper()
	var cursor *string
	read := 0
	for {
		rows, err := pool.Query(t.Context(), `
			select min(c.namespace), min(c.checkpoint_id), coalesce(min(c.parent_id), ''), min(c.body::text) filter (where c.kind = 'document'),
				min(c.body::text) filter (where c.kind = 'metadata'), c.cursor,
				coalesce(array_agg(c.channel || '|' || c.version || '|' || c.type || '|' || coalesce(c.body::text, encode(c.bytes, 'base64')) order by n)
					filter (where c.kind = 'value'), '{}'),
				coalesce(array_agg(c.task_path || '|' || c.task_id || '|' || c.place || '|' || c.channel || '|' || c.type || '|' || coalesce(c.body::text, encode(c.bytes, 'base64')) order by n)
					filter (where c.kind = 'write'), '{}')
			from (select *, row_number() over () as n from agui.checkpoint_contents($1, cursor => $2, max_rows => 7)) c
			group by c.cursor order by min(n)`, thread, cursor)
		must.Do(t, err)
		page := 0
		for rows.Next() {
			var namespace, id, parent, document, metadata, at string
			var values, writes []string
			must.Do(t, rows.Scan(&namespace, &id, &parent, &document, &metadata, &at, &values, &writes))
			page, cursor = page+1, &at
			tuple := m.tuples[[2]string{namespace, id}]
			if tuple == nil {
				t.Fatalf("%q of %q was not put", id, namespace)
			}
			if parent != tuple.parent || document != tuple.document || metadata != tuple.metadata {
				t.Errorf("%s is %q %s %s, want %q %s %s", id, parent, document, metadata, tuple.parent, tuple.document, tuple.metadata)
			}
			shown := func(kind, text string) string {
				if kind == "json" {
					return text
				}
				return base64.StdEncoding.EncodeToString([]byte(text))
			}
			wantValues := []string{}
			for channel, version := range tuple.versions {
				value := m.values[[3]string{namespace, channel, version}]
				wantValues = append(wantValues, channel+"|"+version+"|"+value.kind+"|"+shown(value.kind, value.text))
			}
			slices.Sort(values)
			slices.Sort(wantValues)
			if !slices.Equal(values, wantValues) {
				t.Fatalf("%s has the values\n%.300q\nwant\n%.300q", id, values, wantValues)
			}
			var keys []string
			for key := range m.writes[[2]string{namespace, id}] {
				keys = append(keys, key)
			}
			slices.SortFunc(keys, compareWrites)
			wantWrites := []string{}
			for _, key := range keys {
				channel, rest, _ := strings.Cut(m.writes[[2]string{namespace, id}][key], "|")
				kind, text, _ := strings.Cut(rest, "|")
				wantWrites = append(wantWrites, key+channel+"|"+kind+"|"+shown(kind, text))
			}
			if !slices.Equal(writes, wantWrites) {
				t.Fatalf("%s has the writes\n%.300q\nwant\n%.300q", id, writes, wantWrites)
			}
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
		if page == 0 {
			break
		}
		read += page
	}
	if read != len(m.tuples) {
		t.Errorf("%d checkpoints were read, want %d", read, len(m.tuples))
	}
}

func compareWrites(a, b string) int {
	var pathA, taskA, pathB, taskB string
	var placeA, placeB int
	parse := func(key string, path, task *string, place *int) {
		parts := strings.Split(key, "|")
		*path, *task = parts[0], parts[1]
		_, _ = fmt.Sscan(parts[2], place)
	}
	parse(a, &pathA, &taskA, &placeA)
	parse(b, &pathB, &taskB, &placeB)
	if order := strings.Compare(pathA, pathB); order != 0 {
		return order
	}
	if order := strings.Compare(taskA, taskB); order != 0 {
		return order
	}
	return placeA - placeB
}

// A list that grows by one element at each checkpoint: each element is stored once, and what refers to it does not grow with the list.
func TestGraphCheckpointsStoreEachElementOnce(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	const steps = 200
	var elements []string
	for n := range steps {
		elements = append(elements, fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat("x", 300)))
		// What a task wrote comes before the value that has it.
		testdb.Exec(t, pool, `select agui.put_checkpoint_writes('t', $1, 'task', '{messages}', '{json}', $2)`, fmt.Sprintf("%04d", n), "[["+elements[n]+"]]")
		testdb.Exec(t, pool, `select agui.put_checkpoint('t', $1, $2, '{}', channels => '{messages}', versions => array[$3], types => '{json}', channel_values => $4)`,
			fmt.Sprintf("%04d", n), fmt.Sprintf(`{"channel_versions":{"messages":%d}}`, n), fmt.Sprint(n), "[["+strings.Join(elements, ",")+"]]")
	}
	// The same list in another order refers to the same parts.
	slices.Reverse(elements)
	testdb.Exec(t, pool, `select agui.put_checkpoint('t', 'reversed', '{}', channels => '{messages}', versions => '{reversed}', types => '{json}', channel_values => $1)`,
		"[["+strings.Join(elements, ",")+"]]")
	if parts := testdb.List[string](t, pool, `select count(*)::text from agui.channel_part`); parts[0] != fmt.Sprint(steps) {
		t.Errorf("%s parts are stored, want %d", parts[0], steps)
	}
	if ranges := testdb.List[string](t, pool, `select max(cardinality(part_nos))::text from agui.channel_value where version <> 'reversed'`); ranges[0] != "1" {
		t.Errorf("a value refers to %s ranges of parts, want one", ranges[0])
	}
}

// An array that is stored as the beginning of another version and what follows is the same as if it were stored whole.
func TestGraphCheckpointsAppend(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	put := func(version, kind, value string) error {
		_, err := pool.Exec(t.Context(), `select agui.put_checkpoint('t', $1, json_build_object('channel_versions', json_build_object('list', $1::text)), channels => '{list}',
			versions => array[$1::text], types => array[$2::text], channel_values => ('[' || $3::text || ']')::json)`, version, kind, value)
		return err
	}
	random := rand.New(rand.NewPCG(1, 0))
	var lists [][]string
	for n := range 60 {
		var list []string
		kind, value := "json", ""
		if n > 0 {
			base := random.IntN(n)
			keep := random.IntN(len(lists[base]) + 1)
			var added []string
			for range 1 + random.IntN(3) {
				added = append(added, fmt.Sprintf(`{"n":%d,"text":"%s \u0000 \ud83d \\"}`, random.IntN(30), strings.Repeat("x", 300)))
			}
			list = append(slices.Clone(lists[base][:keep]), added...)
			kind, value = "append", fmt.Sprintf(`{"version":"%d","keep":%d,"values":[%s]}`, base, keep, strings.Join(added, ","))
		} else {
			list = []string{`{"n":0,"text":"` + strings.Repeat("x", 300) + `"}`}
			value = "[" + list[0] + "]"
		}
		lists = append(lists, list)
		if err := put(fmt.Sprint(n), kind, value); err != nil {
			t.Fatal(err)
		}
	}
	for n, list := range lists {
		got := testdb.Ask[string](t, pool, `select body::text from agui.checkpoint_contents('t', $1, '') where kind = 'value'`, fmt.Sprint(n))
		if want := "[" + strings.Join(list, ",") + "]"; got != want {
			t.Fatalf("version %d is %.200s, want %.200s", n, got, want)
		}
	}
	if problems := testdb.List[string](t, pool, `select problem from agui.verify('t')`); len(problems) > 0 {
		t.Errorf("damage: %s", problems)
	}
	if err := put("plain", "json", "1"); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		`{"version":"none","keep":0,"values":[1]}`:  "UI019",
		`{"version":"plain","keep":0,"values":[1]}`: "UI019",
		`{"version":"0","keep":2,"values":[1]}`:     "UI008",
		`{"version":"0","keep":0,"values":[]}`:      "UI008",
		`{"version":"0","keep":-1,"values":[1]}`:    "UI008",
		`{"version":"0","keep":1,"values":[1, 2]}`:  "UI008",
		`{"version":0,"keep":1,"values":[1]}`:       "UI008",
		`{"version":"0","keep":1}`:                  "UI008",
		`{"version":"0","keep":null,"values":[1]}`:  "UI008",
		`[]`: "UI008",
	} {
		if err := put("refused", "append", value); testdb.State(err) != want {
			t.Errorf("%s: error %v, want %s", value, err, want)
		}
	}
}

// Tasks of a step, and steps of several subgraphs, run in parallel.
func TestGraphCheckpointsOfParallelTasks(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	var group sync.WaitGroup
	errs := make(chan error, 1000)
	element := func(n int) string { return fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat("y", 300)) }
	for task := range 8 {
		group.Go(func() {
			for step := range 10 {
				id := fmt.Sprintf("%02d", step)
				// All tasks bring the same and other elements, channels and checkpoints, some in another order.
				channels := []string{"a", "b", fmt.Sprint("c", task)}
				if task%2 == 0 {
					slices.Reverse(channels)
				}
				values := fmt.Sprintf(`[[%s,%s],[%s],[%s]]`, element(step), element(100+task), element(step), element(task))
				if _, err := pool.Exec(t.Context(), `select agui.put_checkpoint_writes('t', $1, $2, $3, '{json,json,json}', $4)`, id, fmt.Sprint("task ", task), channels, values); err != nil {
					errs <- err
				}
				if task < 2 {
					if _, err := pool.Exec(t.Context(), `select agui.put_checkpoint('t', $1, $2, namespace => $3)`, id, `{"channel_versions":{}}`, []string{"", "child"}[task]); err != nil {
						errs <- err
					}
				}
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if got := testdb.List[string](t, pool, `select count(*) || ' writes' from agui.checkpoint_contents('t', namespace => '') where kind = 'write'`); got[0] != "240 writes" {
		t.Errorf("there are %s, want 240", got[0])
	}
	if twice := testdb.List[string](t, pool, `select channel_no || ' ' || body::text from agui.channel_part group by channel_no, body::text having count(*) > 1`); len(twice) > 0 {
		t.Errorf("stored twice: %s", twice)
	}
	if problems := testdb.List[string](t, pool, `select problem from agui.verify('t')`); len(problems) > 0 {
		t.Errorf("damage: %s", problems)
	}
}

// Of what a DeltaChannel is built from, nothing is pruned: the ancestors of the newest checkpoint up to one that has the value.
func TestGraphCheckpointsArePrunedWithTheirDeltas(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for n := range 8 {
		value, counters := `{}`, fmt.Sprintf(`{"list":[%d,%d]}`, n%4, n%4)
		if n%4 == 0 { // 0 and 4 have the value
			value, counters = `{list}`, `{}`
		}
		testdb.Exec(t, pool, `select agui.put_checkpoint('t', $1, $2, $3, nullif($4, '-1'), $5::text[], $5::text[], array_fill('json'::text, array[cardinality($5::text[])]),
			(case when cardinality($5::text[]) > 0 then json_build_array(json_build_array(repeat($1, 300))) else '[]' end))`,
			fmt.Sprint(n), `{"channel_versions":{"list":"`+map[bool]string{true: "list", false: fmt.Sprint(n)}[n%4 == 0]+`"}}`, `{"counters_since_delta_snapshot":`+counters+`}`, fmt.Sprint(n-1), value)
		testdb.Exec(t, pool, `select agui.put_checkpoint_writes('t', $1, 'task', '{list}', '{json}', json_build_array('after ' || $1::text))`, fmt.Sprint(n))
	}
	history := `select coalesce(task_id, 'value') || ' ' || left(body #>> '{}', 12) from agui.channel_history('t', '{list}') order by place`
	before := testdb.List[string](t, pool, history)
	if n := testdb.Ask[int](t, pool, `select agui.prune_checkpoints('t')`); n != 4 {
		t.Errorf("%d checkpoints were pruned, want 4", n)
	}
	if after := testdb.List[string](t, pool, history); !slices.Equal(before, after) || len(after) != 4 {
		t.Errorf("the history is %q, want %q", after, before)
	}
	if n := testdb.Ask[int](t, pool, `select agui.prune_checkpoints('t')`); n != 0 {
		t.Errorf("%d checkpoints were pruned a second time", n)
	}
	// Its ancestor comes a second time, as from a graph that runs anew from the start.
	testdb.Exec(t, pool, `select agui.put_checkpoint('t', '0', '{}')`)
	if problems := testdb.List[string](t, pool, `select problem from agui.verify('t')`); len(problems) > 0 {
		t.Errorf("damage: %s", problems)
	}
}

// The history of a channel is that of the lineage, newest first, to the nearest value.
func TestGraphChannelHistoryFollowsTheLineage(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	put := func(id, parent string, value string) {
		t.Helper()
		channels, versions, values := "{}", `{}`, "[]"
		if value != "" {
			channels, versions, values = "{list}", `{"list":"`+id+`"}`, "["+value+"]"
		}
		var given any
		if parent != "" {
			given = parent
		}
		testdb.Exec(t, pool, `select agui.put_checkpoint('t', $1, $2, '{}', $3, $4::text[], array_fill($1::text, array[cardinality($4::text[])]), array_fill('json'::text, array[cardinality($4::text[])]), $5)`,
			id, `{"channel_versions":`+versions+`}`, given, channels, values)
		testdb.Exec(t, pool, `select agui.put_checkpoint_writes('t', $1, 'task b', '{list,other}', '{json,json}', $2), agui.put_checkpoint_writes('t', $1, 'task a', '{list}', '{json}', $3)`,
			id, `["b after `+id+`","o after `+id+`"]`, `["a after `+id+`"]`)
	}
	put("1", "", `"old"`)
	put("2", "1", `"seed"`)
	put("3", "2", "")
	put("4", "3", "")
	put("branch", "2", "")
	got := testdb.List[string](t, pool, `select channel || ' ' || coalesce(task_id, 'value') || ' ' || (body #>> '{}') from agui.channel_history('t', '{list,other,unknown}', '4') order by place`)
	want := []string{
		"other task b o after 1", "list value seed", "list task a a after 2", "list task b b after 2", "other task b o after 2",
		"list task a a after 3", "list task b b after 3", "other task b o after 3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the history is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// What names itself as its parent keeps the one that it has.
	put("4", "4", "")
	put("own", "own", "")
	lineage := testdb.List[string](t, pool, `select checkpoint_id || ' after ' || coalesce(parent_id, 'none') from agui.checkpoint_contents('t') where kind = 'document' and checkpoint_id in ('4', 'own') order by 1`)
	if want := []string{"4 after 3", "own after none"}; !slices.Equal(lineage, want) {
		t.Errorf("the parents are %q, want %q", lineage, want)
	}
	// A cycle ends.
	put("x", "y", "")
	put("y", "x", "")
	if got := testdb.List[string](t, pool, `select count(*)::text from agui.channel_history('t', '{list}', 'x'), agui.checkpoint_lineage('t', 'x')`); got[0] == "0" {
		t.Error("a cycle has no history")
	}
}

func TestGraphCheckpointsRefuse(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `select agui.save_checkpoint('t', 'saved', '1'), agui.save_checkpoint('other', 'saved', '1')`)
	for call, want := range map[string]string{
		`agui.put_checkpoint('t', 'saved', '{}')`:                                  "UI007",
		`agui.put_checkpoint_writes('t', 'saved', 'task', '{a}', '{json}', '[1]')`: "UI007",
		`agui.put_checkpoint('t', '', '{}')`:                                       "UI008",
		`agui.put_checkpoint('t', 'c', '1')`:                                       "UI008",
		`agui.put_checkpoint('t', 'c', '{}', '[]')`:                                "UI008",
		`agui.put_checkpoint('t', 'c', '{}', channels => '{a}')`:                   "UI008",
		`agui.put_checkpoint('t', 'c', '{}', channels => '{a}', versions => '{1}', types => '{json}', channel_values => '[1,2]')`:                  "UI008",
		`agui.put_checkpoint('t', 'c', '{}', channels => '{a}', versions => '{1}', types => '{json}', channel_values => '{}')`:                     "UI008",
		`agui.put_checkpoint('t', 'c', '{}', channels => '{a}', versions => '{1}', types => '{bytes}', channel_values => '[1]')`:                   "UI008",
		`agui.put_checkpoint('t', 'c', '{}', channels => '{a}', versions => '{1}', types => '{bytes}', channel_values => '["*"]')`:                 "22023",
		`agui.put_checkpoint('t', repeat('c', 2000), '{}')`:                                                                                        "UI011",
		`agui.put_checkpoint('t', 'c', '{}', run_id => repeat('c', 2000))`:                                                                         "UI011",
		`agui.put_checkpoint('t', 'c', '{}', channels => array[repeat('a', 2000)], versions => '{1}', types => '{json}', channel_values => '[1]')`: "UI011",
		`agui.put_checkpoint_writes('t', 'c', null, '{a}', '{json}', '[1]')`:                                                                       "UI008",
		`agui.put_checkpoint_writes('t', 'c', 'task', '{a}', '{json}', '[1]', '{0,1}')`:                                                            "UI008",
		`agui.checkpoint_contents('t', cursor => 'x')`:                                                                                             "22023",
		`agui.checkpoint_contents('t', max_rows => 5000)`:                                                                                          "UI011",
		`agui.channel_history('t', null)`:                                                                                                          "UI008",
		`agui.remove_checkpoints(null)`:                                                                                                            "UI008",
		`agui.prune_checkpoints(null)`:                                                                                                             "UI008",
		`agui.remove_run_checkpoints(null)`:                                                                                                        "UI008",
		`agui.copy_checkpoints('t', 't')`:                                                                                                          "UI008",
		`agui.copy_checkpoints('t', 'other')`:                                                                                                      "UI007",
	} {
		if _, err := pool.Exec(t.Context(), `select `+call); testdb.State(err) != want {
			t.Errorf("%s: error %v, want %s", call, err, want)
		}
	}
	if rows := testdb.List[string](t, pool, `select checkpoint_id from agui.checkpoints('t')`); !slices.Equal(rows, []string{"saved"}) {
		t.Errorf("refused calls left %s", rows)
	}
	testdb.Exec(t, pool, `select agui.put_checkpoint('t', 'c', '{}')`)
	if removed := testdb.List[string](t, pool, `select agui.remove_checkpoints('t')::text`); removed[0] != "2" {
		t.Errorf("%s were removed, want 2", removed[0])
	}
	testdb.Exec(t, pool, `select agui.save_checkpoint('t', 'saved', '2')`) // no tombstone
}

// A filter compares as jsonb does, whatever strings the metadata has.
func TestGraphCheckpointsAreFilteredByMetadata(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for n, metadata := range []string{`{"source":"loop","step":1.0}`, `{"step": 1,"source":"input"}`, `{"text":"\u0000\ud800"}`, `{"text":"\\u0000\\ud800"}`} {
		testdb.Exec(t, pool, `select agui.put_checkpoint('t', $1, '{}', $2)`, fmt.Sprint(n), metadata)
	}
	for filter, want := range map[string]string{
		`{}`: "3 2 1 0", `{"step":1}`: "1 0", `{"source":"loop"}`: "0", `{"text":"\u0000\ud800"}`: "2", `{"text":"\\u0000\\ud800"}`: "3", `{"other":1}`: "",
	} {
		for _, namespace := range []any{nil, ""} {
			if got := testdb.List[string](t, pool, `select checkpoint_id from agui.checkpoint_contents('t', namespace => $1, filter => $2) where kind = 'document'`, namespace, filter); strings.Join(got, " ") != want {
				t.Errorf("%s finds %s, want %s", filter, got, want)
			}
		}
	}
	// Of all threads of the scope, and of no other.
	testdb.Exec(t, pool, `select agui.put_checkpoint('other', '9', '{}', '{"source":"loop"}'), agui.put_checkpoint('t', '8', '{}', '{"source":"loop"}', scope => 's')`)
	if got := testdb.List[string](t, pool, `select thread_id || ' ' || checkpoint_id from agui.checkpoint_contents(filter => '{"source":"loop"}', max_rows => 2) where kind = 'document'`); strings.Join(got, ", ") != "other 9, t 0" {
		t.Errorf("all threads have %s", got)
	}
}
