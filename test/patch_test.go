package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// takeAllApart makes agui_internal.json_patch_apply take apart all that it touches, where it otherwise spares what is small or rarely patched.
func takeAllApart(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	definition := testdb.Ask[string](t, pool, `select pg_get_functiondef('agui_internal.json_patch_apply'::regproc)`)
	for _, limit := range []string{"visits_to_open", "bytes_to_open"} {
		pattern := regexp.MustCompile(limit + `( +constant int := )\d+;`)
		if !pattern.MatchString(definition) {
			t.Fatalf("agui_internal.json_patch_apply has no %s", limit)
		}
		definition = pattern.ReplaceAllString(definition, limit+"${1}0;")
	}
	testdb.Exec(t, pool, definition)
}

// Patches do in SQL what the RFCs say, whether the document is patched in one piece or taken apart.
func TestPatchesInSQL(t *testing.T) {
	t.Parallel()
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprintf("taken apart %t", apart), func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			if apart {
				takeAllApart(t, pool)
			}
			documents := make([]string, len(compactiontest.PatchCases))
			patches := make([]string, len(compactiontest.PatchCases))
			for i, test := range compactiontest.PatchCases {
				documents[i], patches[i] = test.Document, test.Patch
			}
			rows, err := pool.Query(context.Background(), `
				select (patched.document is not distinct from test.document) as same, agui_internal.json_from_jsonb(patched.document), coalesce(patched.problem, '')
				from (
					select agui_internal.json_to_jsonb(document) as document, agui_internal.json_to_jsonb(patch) as patch, position
					from unnest($1::text[], $2::text[]) with ordinality as test (document, patch, position)
				) as test, agui_internal.json_patch_apply(test.document, array[test.patch], agui_internal.limits_of_jsonb(), null, false) as patched
				order by test.position`, documents, patches)
			must.Do(t, err)
			defer rows.Close()
			for _, test := range compactiontest.PatchCases {
				var same bool
				var result, problem string
				if !rows.Next() {
					t.Fatal(rows.Err())
				}
				must.Do(t, rows.Scan(&same, &result, &problem))
				switch {
				case problem == "" && test.Want == "":
					t.Errorf("%s: %s of %s gives %s, and should fail", test.Section, test.Patch, test.Document, result)
				case problem != "" && test.Want != "":
					t.Errorf("%s: %s of %s fails: %s", test.Section, test.Patch, test.Document, problem)
				case problem != "" && !same:
					t.Errorf("%s: %s of %s fails, but leaves %s", test.Section, test.Patch, test.Document, result)
				case problem == "" && canonical([]byte(result)) != canonical([]byte(test.Want)):
					t.Errorf("%s: %s of %s gives %s, not %s", test.Section, test.Patch, test.Document, result, test.Want)
				}
			}
		})
	}
}

func TestFailedPatchNamesTheOperation(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for _, test := range []struct{ patch, message string }{
		{`{}`, `the patch: it is not a JSON array of operations`},
		{`[7]`, `operation 1: it is not a JSON object`},
		{`[{"path":"/a"}]`, `operation 1: it has no op`},
		{`[{"op":"fly","path":"/a"}]`, `operation 1: there is no such operation`},
		{`[{"op":"remove"}]`, `operation 1 remove: it has no path`},
		{`[{"op":"remove","path":"a"}]`, `operation 1 remove: its path is not a JSON pointer`},
		{`[{"op":"add","path":"/a"}]`, `operation 1 add: it has no value`},
		{`[{"op":"move","path":"/a"}]`, `operation 1 move: it has no from`},
		{`[{"op":"move","path":"/a","from":"b"}]`, `operation 1 move: its from is not a JSON pointer`},
		{`[{"op":"move","path":"/a","from":"/b"}]`, `operation 1 move: nothing is at its from`},
		{`[{"op":"move","path":"/a/x","from":"/a"}]`, `operation 1 move: a value cannot be moved into itself`},
		{`[{"op":"add","path":"/b","value":2},{"op":"remove","path":"/c"}]`, `operation 2 remove: nothing is at the path`},
		{`[{"op":"test","path":"/n","value":2}]`, `operation 1 test: the value there is another one`},
		{`[{"op":"add","path":"/n/x","value":2}]`, `operation 1 add: the parent of the path is neither an object nor an array`},
		{`[{"op":"add","path":"/x/y","value":2}]`, `operation 1 add: the parent of the path does not exist`},
		{`[{"op":"add","path":"/list/3","value":2}]`, `operation 1 add: the array has no such position`},
	} {
		_, err := pool.Exec(context.Background(), `select agui.json_patch('{"a":{},"n":1,"list":[1,2]}', $1::jsonb)`, test.patch)
		if failure, ok := errors.AsType[*pgconn.PgError](err); !ok || failure.Code != "UI020" || failure.Message != "JSON patch: "+test.message {
			t.Errorf("%s: got %v, want UI020 JSON patch: %s", test.patch, err, test.message)
		}
	}
}

// Streams of patches on large states mean the same in SQL, in Go and to the client.
func TestPatchStreamsAgree(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name    string
		apart   bool
		options compactiontest.Options
	}{
		{"as they come", false, compactiontest.Options{Events: 150}},
		{"taken apart", true, compactiontest.Options{Events: 150}},
		{"odd JSON, taken apart", true, compactiontest.Options{Events: 150, Unicode: true, Numbers: true}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			judges := reducers{pool: testdb.Pool(t)}
			if kind.apart {
				takeAllApart(t, judges.pool)
			}
			if !kind.options.Unicode {
				judges.client = startOracle(t)
			}
			streams := make([][]json.RawMessage, streamsOfAKind(2))
			for seed := range streams {
				streams[seed] = compactiontest.PatchStream(*firstSeed+uint64(seed), kind.options)
			}
			for seed, difference := range judges.differences(t, streams) {
				if difference == "" {
					continue
				}
				shrunk := shrink(streams[seed], func(stream []json.RawMessage) bool {
					return judges.differences(t, [][]json.RawMessage{stream})[0] != ""
				})
				t.Fatalf("seed %d: %s\nthe stream, shrunk to %d events:\n%s", *firstSeed+uint64(seed),
					judges.differences(t, [][]json.RawMessage{shrunk})[0], len(shrunk), bytes.Join(rawBytes(shrunk), []byte("\n")))
			}
		})
	}
}

// All patches at once make the same of a document as one after the other.
func TestPatchesAtOnce(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	const patches = `(values
		(1, '[{"op":"add","path":"/list","value":[1]}]'::jsonb),
		(2, '[{"op":"add","path":"/list/-","value":2},{"op":"remove","path":"/missing"}]'),
		(3, null),
		(4, '[{"op":"add","path":"/list/-","value":3}]')) as patch (seq, patch)`
	for query, want := range map[string]string{
		`select agui.json_patch_agg(patch order by seq) from ` + patches:                                                                                                             `{"list": [1, 3]}`,
		`select agui.json_patch_agg(patch order by seq desc) from ` + patches:                                                                                                        `{"list": [1]}`,
		`select agui.json_patch_agg(patch order by seq) from ` + patches + ` where seq < 1`:                                                                                          `null`,
		`select agui_internal.json_patch_all('{"n":1}', array_agg(patch order by seq)) from ` + patches:                                                                              `{"n": 1, "list": [1, 3]}`,
		`select agui_internal.json_patch_all('{"n":1}', '{}')`:                                                                                                                       `{"n": 1}`,
		`select string_agg(state::text, ' ' order by part) from (select seq / 2 as part, agui.json_patch_agg(patch order by seq) as state from ` + patches + ` group by 1) as parts`: `{"list": [1]} {} {}`,
	} {
		var got string
		if err := pool.QueryRow(context.Background(), `select coalesce((`+query+`)::text, 'null')`).Scan(&got); err != nil {
			t.Errorf("%s: %v", query, err)
		} else if got != want {
			t.Errorf("%s gives %s, not %s", strings.Join(strings.Fields(query), " "), got, want)
		}
	}
}
