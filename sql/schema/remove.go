package schema

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Down removes the schemas with all that they store: the objects that the install has recorded as its own, whichever build made
// them. What others made in the schemas stays, and so do the schemas then; when something of others depends on what is to be
// removed, nothing is, and the error names it. While conversations are stored, the error is ErrHoldsData unless DeleteData allows it.
func Down(ctx context.Context, databaseURL string, options ...Option) error {
	settings, err := settingsOf(options)
	if err != nil {
		return err
	}
	return withLock(ctx, databaseURL, settings, func(connection *pgx.Conn) error {
		state, err := settings.chain.readState(ctx, connection)
		if err != nil {
			return err
		}
		objects, err := toRemove(ctx, connection, state, settings.force)
		if err != nil {
			return err
		}
		if !settings.deleteData && slices.Contains(objects, "table agui.thread") {
			var holdsData bool
			if err := connection.QueryRow(ctx, `select exists (select from agui.thread)`).Scan(&holdsData); err != nil || holdsData {
				return cmp.Or(err, ErrHoldsData)
			}
		}
		if err := untilLocked(ctx, func() error { return remove(context.WithoutCancel(ctx), connection, objects) }); err != nil {
			return namingDependents(err)
		}
		left, err := contents(ctx, connection)
		if err == nil && len(left) > 0 {
			settings.notice("kept what others made in the schemas agui and agui_internal: " + strings.Join(left, ", "))
		}
		return err
	})
}

// CheckDown reports whether Down would refuse: ErrInstalledOtherwise or ErrOtherBuild. It changes nothing.
func CheckDown(ctx context.Context, databaseURL string, options ...Option) error {
	settings, err := settingsOf(options)
	if err != nil {
		return err
	}
	connection, err := connect(ctx, databaseURL, settings)
	if err != nil {
		return err
	}
	defer connection.Close(context.WithoutCancel(ctx))
	state, err := settings.chain.readState(ctx, connection)
	if err != nil {
		return err
	}
	_, err = toRemove(ctx, connection, state, settings.force)
	return err
}

// toRemove are the objects to drop, in the words of DROP.
func toRemove(ctx context.Context, connection *pgx.Conn, state State, force bool) (objects []string, err error) {
	switch {
	case state.Version == 0 && !state.isThere:
		return []string{}, nil
	case state.Version == 0:
		objects, err := contents(ctx, connection)
		if err == nil && !force {
			return nil, fmt.Errorf("%w, and nothing in it says what belongs to it: pgagui migrate down --force removes the schemas agui and "+
				"agui_internal with all that is in them: %s", ErrOtherBuild, abridged(objects))
		}
		return objects, err
	case state.OtherTool && !force:
		return nil, fmt.Errorf("%w, whose version table would still list it: remove it with that tool (pgagui migrate sql --down "+
			"prints how), or remove it with pgagui migrate down --force", ErrInstalledOtherwise)
	}
	err = connection.QueryRow(ctx, `select objects from agui_internal.installed()`).Scan(&objects)
	// Indexes and triggers go with their tables.
	return slices.DeleteFunc(objects, func(object string) bool {
		return strings.HasPrefix(object, "index ") || strings.HasPrefix(object, "trigger ")
	}), err
}

// abridged lists tables and views, and says how many others there are.
func abridged(objects []string) string {
	var named []string
	others := 0
	for _, object := range objects {
		if strings.HasPrefix(object, "table ") || strings.HasPrefix(object, "view ") {
			named = append(named, object)
		} else {
			others++
		}
	}
	return strings.Join(append(named, fmt.Sprintf("%d functions and other objects", others)), ", ")
}

// contents are all objects in the schemas but for the version table, in the words of DROP.
func contents(ctx context.Context, connection *pgx.Conn) ([]string, error) {
	rows, err := connection.Query(ctx, `
		with namespace as (
			select oid, nspname from pg_namespace where nspname in ('agui', 'agui_internal')
		), listed (object) as (
			select format('%s %I.%I', kind.name, namespace.nspname, class.relname)
			from pg_class as class
			join namespace
				on namespace.oid = class.relnamespace
			join (values ('r', 'table'), ('p', 'table'), ('f', 'foreign table'), ('v', 'view'), ('m', 'materialized view'), ('S', 'sequence'))
				as kind (relkind, name)
				on kind.relkind = class.relkind
			where class.relname <> 'schema_migrations'
				and not exists (select from pg_depend where objid = class.oid and classid = 'pg_class'::regclass and deptype in ('a', 'i', 'e')
					and refclassid = 'pg_class'::regclass)
			union all
			select format('routine %I.%I(%s)', namespace.nspname, routine.proname, pg_get_function_identity_arguments(routine.oid))
			from pg_proc as routine
			join namespace
				on namespace.oid = routine.pronamespace
			union all
			select format('type %I.%I', namespace.nspname, type.typname)
			from pg_type as type
			join namespace
				on namespace.oid = type.typnamespace
			where type.typtype in ('d', 'e', 'r')
				or type.typtype = 'c' and exists (select from pg_class where oid = type.typrelid and relkind = 'c')
		)
		select object from listed order by object`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// remove drops objects, the version table, and the schemas where they are empty then, all or nothing. No drop cascades: what
// others depend on is not dropped.
func remove(ctx context.Context, connection *pgx.Conn, objects []string) error {
	return pgx.BeginFunc(ctx, connection, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select set_config('lock_timeout', $1, true), set_config('agui.to_remove', $2::text[]::text, true)`,
			fmt.Sprint(lockTimeout.Milliseconds()), objects)
		if err != nil {
			return err
		}
		// Objects depend on each other in ways that their names do not tell. So all are tried in turn, until a round drops none.
		_, err = tx.Exec(ctx, `
			do $$
			declare
				remaining text[] := current_setting('agui.to_remove');
				stuck     text[];
				object    text;
				problem   text;
				detail    text;
			begin
				set local client_min_messages = warning;
				while remaining <> '{}' loop
					stuck := '{}';
					foreach object in array remaining loop
						begin
							execute 'drop ' || regexp_replace(object, '^(foreign table|materialized view|\w+) ', '\1 if exists ');
						exception when dependent_objects_still_exist then
							stuck := stuck || object;
							get stacked diagnostics problem = message_text, detail = pg_exception_detail;
						end;
					end loop;
					if stuck = remaining then
						raise exception using errcode = 'dependent_objects_still_exist', message = problem, detail = detail;
					end if;
					remaining := stuck;
				end loop;
				drop table if exists agui.schema_migrations;
				begin
					drop schema if exists agui_internal;
				exception when dependent_objects_still_exist or insufficient_privilege then
					null;
				end;
				begin
					drop schema if exists agui;
				exception when dependent_objects_still_exist or insufficient_privilege then
					null;
				end;
			end
			$$`)
		return err
	})
}
