package migration

import (
	"fmt"
	"slices"
	"strings"
)

// record is what a database holds about its install: which version, of which text, and which objects belong to it.
type record struct {
	version     uint // 0: nothing is installed
	fingerprint string
	objects     []string
	serves      uint // the oldest version whose programs work with this one
	// recordsObjects: the install has the procedure that records what the catalog says of the objects.
	recordsObjects bool
	isPassed       bool   // more migrations follow, of which the last one records the catalog: that takes time
	isFirst        bool   // of an install: there is no record before
	build          *Build // nil: it is released
}

const (
	installedFunction   = "agui_internal.installed"
	installedTable      = "agui_internal.installed_object"
	recordProcedure     = "agui_internal.record_objects"
	widthOfObjectsLines = 120
)

// newRecord is the record that a migration leaves in a database, which then has the state.
func newRecord(m Migration, s *state, serves uint) record {
	objects := []string{"routine " + installedFunction}
	for _, object := range s.objects {
		objects = append(objects, object.key())
	}
	slices.Sort(objects)
	return record{
		version: m.Version, fingerprint: m.Fingerprint, objects: objects, serves: min(serves, m.Version),
		recordsObjects: s.find("routine "+recordProcedure) != nil,
	}
}

// installed is the SQL that leaves the record in the database.
func (r record) installed() string {
	comment := ""
	if r.isFirst || r.version == 1 {
		comment = fmt.Sprintf(`
comment on function %[1]s() is
    'The version of the schemas agui and agui_internal, a hash of the text of the migrations that made them, what belongs to them, and the '
    'oldest version whose programs work with it. The migrations write it, whichever tool runs them.';

revoke execute on function %[1]s() from public;
`, installedFunction)
	}
	call := ""
	switch {
	case r.recordsObjects && r.isPassed:
		call = fmt.Sprintf("\ndelete from %s;\n", installedTable)
	case r.recordsObjects:
		call = fmt.Sprintf("\ncall %s();\n", recordProcedure)
	}
	build, objects := "", r.objects
	if r.build != nil {
		build = r.build.recorded()
		objects = append(slices.Clone(objects), "routine "+buildFunction)
	}
	return fmt.Sprintf(`%s
create or replace function %s(out version int, out fingerprint text, out objects text[], out serves int)
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as 'select %d, ''%s'', ''{
%s
}''::text[], %d';
%s%s%s%s`, recordBegin, installedFunction, r.version, r.fingerprint, lines(objects), r.serves, comment, build, call, recordEnd)
}

// restored is the SQL for the way back from another record: this one as it was, and the removal of what it no longer has.
func (r record) restored(from record) string {
	if r.version == 0 {
		return fmt.Sprintf("%s\ndrop function %s();\n%s", recordBegin, installedFunction, recordEnd)
	}
	text := r.installed()
	if from.build != nil {
		text = strings.Replace(text, recordBegin, fmt.Sprintf("%s\ndrop function if exists %s();\n", recordBegin, buildFunction), 1)
	}
	if !r.recordsObjects {
		// What comes after this version is gone, and with it who granted privileges and who recorded the catalog.
		text = strings.Replace(text, "create or replace function", fmt.Sprintf("drop function %s();\n\ncreate or replace function", installedFunction), 1)
		if slices.Contains(r.objects, "table "+installedTable) {
			text = strings.Replace(text, recordEnd, fmt.Sprintf("\ndelete from %s;\n%s", installedTable, recordEnd), 1)
		}
	}
	return text
}

// lines joins elements of an array in lines that are not too long.
func lines(elements []string) string {
	var lines []string
	line := ""
	for i, element := range elements {
		if i < len(elements)-1 {
			element += ","
		}
		switch {
		case line == "":
			line = element
		case len(line)+1+len(element) > widthOfObjectsLines:
			lines = append(lines, line)
			line = element
		default:
			line += " " + element
		}
	}
	return strings.Join(append(lines, line), "\n")
}
