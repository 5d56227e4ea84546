package test

import (
	"maps"
	"slices"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
)

// A row whose large value stays in it (storage main) also keeps its ids, names and hashes. Otherwise each would take a row of the TOAST
// table and an entry of its index, and a second look-up with each read.
func TestALargeRowKeepsItsIds(t *testing.T) {
	t.Parallel()
	rows := map[string]string{
		"batch":            `(thread_key, first_seq, recorded_at, n, run_no, events, hash) select key, 1, now(), 1, 1, value, sha256('')`,
		"channel_part":     `(thread_key, channel_no, part_no, print, body) select key, 1, 1, 1, value`,
		"channel_value":    `(thread_key, channel_no, version, body) select key, 1, id, value`,
		"checkpoint":       `(thread_key, checkpoint_no, namespace, checkpoint_id, run_id, document, metadata) select key, 1, id, id, id, value, to_json(id)`,
		"checkpoint_write": `(thread_key, checkpoint_no, task_id, place, task_path, channel_no, body) select key, 1, id, 1, id, 1, value`,
		"input_part":       `(thread_key, kind, part_no, print, bytes, message_id, body) select key, 'message', 1, 1, 1, id, value`,
		"run_input":        `(thread_key, run_no, input, hash, bytes) select key, 1, value, sha256(''), 1`,
		"session_state":    `(thread_key, run_no, key, version, document) select key, 1, id, 1, value`,
	}
	pool := testdb.Pool(t)
	tables := testdb.List[string](t, pool, `
		select relname::text from pg_class
		where relnamespace = 'agui'::regnamespace and relkind = 'r'
			and exists (select from pg_attribute where attrelid = pg_class.oid and attnum > 0 and attstorage = 'm')
		order by relname collate "C"`)
	if want := slices.Sorted(maps.Keys(rows)); !slices.Equal(tables, want) {
		t.Errorf("tables with a large value in the row: %s, tested are %s", tables, want)
	}
	for table, row := range rows {
		// Without triggers and foreign keys; hexadecimal digits hardly compress.
		if _, err := pool.Exec(t.Context(), `
			set session_replication_role = replica;
			with given as (
				select gen_random_uuid() as key, md5('1') || md5('2') as id, to_json((select string_agg(md5(i::text), '') from generate_series(1, 120) as i)) as value
			)
			insert into agui.`+table+" "+row+" from given"); err != nil {
			t.Fatal(table, err)
		}
		bytes := testdb.Ask[int64](t, pool, `select pg_relation_size(reltoastrelid) from pg_class where oid = $1::text::regclass`, "agui."+table)
		if bytes > 0 {
			t.Errorf("agui.%s stores something of a row of 3 KB elsewhere", table)
		}
	}
}
