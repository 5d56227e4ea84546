package qualify

import (
	"strings"
	"testing"
)

func TestSQL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`select count(*) from agui.run where run_no = $1 and n + 1 - 2 > 0`: `select pg_catalog.count(*) from agui.run where ` +
			`run_no operator(pg_catalog.=) $1 and n operator(pg_catalog.+) 1 operator(pg_catalog.-) 2 operator(pg_catalog.>) 0`,
		`select left(a, 2) from agui.b left join agui.c on true`:                                           `select pg_catalog.left(a, 2) from agui.b left join agui.c on true`,
		`select 'a = b', "x = y", -- c = d`:                                                                `select 'a = b', "x = y", -- c = d`,
		`select $1::text[], cast($2 as uuid), cast($3::text[] as json[]), x::int, extract(epoch from age)`: `select $1::pg_catalog.text[], cast($2 as pg_catalog.uuid), cast($3::pg_catalog.text[] as pg_catalog.json[]), x::int, extract(epoch from age)`,
		`with recursive a as (select 1), b as (select 2) select from a join b on a.x <> all ($1)`: `with recursive a as (select 1), b as (select 2) ` +
			`select from a join b on a.x operator(pg_catalog.<>) all ($1)`,
		`update agui.run set (a, b) = (c, d), e = f from pg_class where agui.f(x => 1)`: `update agui.run set (a, b) = (c, d), e operator(pg_catalog.=) f ` +
			`from pg_catalog.pg_class where agui.f(x => 1)`,
		`select x from unnest($1::int[]) with ordinality as item (x, n) for no key update skip locked`: `select x from pg_catalog.unnest($1::int[]) ` +
			`with ordinality as item (x, n) for no key update skip locked`,
		`declare a constant text := b -> 'c'; raise exception using message = format('%s', a);`: `declare a constant pg_catalog.text := b operator(pg_catalog.->) 'c'; ` +
			`raise exception using message = pg_catalog.format('%s', a);`,
	} {
		got, err := SQL(text)
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
		if again, err := SQL(got); err != nil || again != got {
			t.Errorf("%s: qualified twice: %s, %v", text, again, err)
		}
	}
}

// What names an operator in a way that takes no schema is refused, and so is what would mean something else: operators with a schema bind alike.
func TestSQLRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`select x where a <= least(b, c) + 1`:           `"+"`,
		`select x where a = case when b then c end + 1`: `"+"`,
		`select x where a = any (b) || c`:               `"||"`,
		"select x\nwhere a = b + 1":                     `line 2: "+"`,
		`select x where a in (1, 2)`:                    `"in"`,
		`select x where a like 'b%'`:                    `"like"`,
		`select x where a between 1 and 2`:              `"between"`,
		`select nullif(a, '')`:                          `"nullif"`,
		`select x where a is not distinct from b`:       `"distinct"`,
		`select case a when b then c end`:               `"case"`,
		`select x from agui.a join agui.b using (c)`:    `"using"`,
	} {
		if _, err := SQL(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to name %s", text, err, want)
		}
	}
}
