// Package functions holds the sources of the schemas agui and agui_internal but for their tables: functions, types and views, one file
// an area. Package sql/schema makes the migrations of them. README.md says what belongs where.
package functions

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// Files are the sources, FLOOR/AREA.sql.
//
//go:embed */*.sql
var Files embed.FS

// An Object is a function, type or view.
type Object struct {
	Name string // agui.append
	Area string // api/append
	Text string // the comment directly above its statement, the statement and those about it
	// Facts is what the comment says, as "-- role: writer; route: threads". README.md explains what there is to say.
	Facts map[string]string
}

var (
	created = regexp.MustCompile(`(?m)^((?:--.*\n)*)create (?:or replace )?(?:function|procedure|aggregate|view|type|domain) (agui(?:_internal)?\.\w+)`)
	facts   = regexp.MustCompile(`(?m)^-- ((?:\w+: [^;\n]+(?:; |$))+)$`)
	known   = []string{"role", "check", "route", "never", "always"}
)

// Objects returns the objects of the sources in files.
func Objects(files fs.FS) (objects []Object, err error) {
	names, err := fs.Glob(files, "*/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		text := string(content)
		found := created.FindAllStringSubmatchIndex(text, -1)
		for i, match := range found {
			end := len(text)
			if i+1 < len(found) {
				end = found[i+1][0]
			}
			object := Object{text[match[4]:match[5]], strings.TrimSuffix(name, ".sql"), text[match[0]:end], map[string]string{}}
			for _, line := range facts.FindAllStringSubmatch(text[match[2]:match[3]], -1) {
				for fact := range strings.SplitSeq(line[1], "; ") {
					key, value, _ := strings.Cut(fact, ": ")
					if !slices.Contains(known, key) {
						return nil, fmt.Errorf("%s: above %s: there is no fact %q, only %q", name, object.Name, key, known)
					}
					object.Facts[key] = value
				}
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}
