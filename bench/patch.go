package bench

import "context"

// patch applies 1,000 patches to a document of 93 KB in SQL.
func (b *bench) patch(ctx context.Context) error {
	database, err := b.server.create(ctx, 1)
	if err != nil {
		return err
	}
	if _, err := database.Exec(ctx, `
		create table large as
		select
			(
				select jsonb_object_agg('section' || section, items)
				from generate_series(1, 27) as section, lateral (
					select jsonb_object_agg('item' || n, jsonb_build_object('id', section * 1000 + n, 'status', 'open', 'title', repeat('x', 60))) as items
					from generate_series(1, 30) as n
				) as list
			) as document,
			(
				select array_agg(jsonb_build_array(jsonb_build_object(
					'op', 'replace', 'path', format('/section%s/item%s/status', 1 + n * 7919 % 27, 1 + n * 104729 / 27 % 30), 'value', n
				)))
				from generate_series(1, 1000) as n
			) as patches;
		create function one_by_one(document jsonb, patches jsonb[]) returns jsonb language plpgsql as $$
		declare
			patch jsonb;
		begin
			foreach patch in array patches loop
				document := jsonb_set(document, string_to_array(substr(patch #>> '{0,path}', 2), '/'), patch #> '{0,value}');
			end loop;
			return document;
		end $$`); err != nil {
		return err
	}
	const ours, loop = "pgagui", "loop of jsonb_set"
	query := func(name, text string) side {
		return timed(name, func(ctx context.Context) error {
			_, err := database.Exec(ctx, text)
			return err
		})
	}
	measured, err := b.rounds(ctx, "patch",
		query(ours, "select agui_internal.json_patch_all(document, patches) from large"),
		query(loop, "select one_by_one(document, patches) from large"))
	if err != nil {
		return err
	}
	const patches = 1000
	b.report.add(Measurement{
		Phase: "patch", What: "1,000 JSON patches on 93 KB in SQL", Unit: "patches/s",
		Ours: Side{Name: ours}, Against: Side{Name: loop}, Target: atLeast("12", 20),
	}, rates(measured[ours], patches), rates(measured[loop], patches))
	return database.drop(ctx)
}
