package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed extension/*
var extensionParts embed.FS

// firstExtension is the first version of the schema that is an extension.
const firstExtension = 2

// Extension are the files of an extension for PostgreSQL: the control file and the scripts. The version of the extension is
// that of the schema. docs/install.md says when an extension is the better way to install, and when not.
func Extension() fs.FS {
	part := func(name string) string {
		text, err := extensionParts.ReadFile("extension/" + name)
		if err != nil {
			panic(err) // it is part of the program
		}
		return string(text)
	}
	script := func(what string, texts ...string) string {
		return fmt.Sprintf("\\echo Use \"%s\" to load this file. \\quit\n\n%s", what, strings.Join(texts, "\n"))
	}
	latest, settle := fmt.Sprint(Latest()), part("settle.sql")
	files := map[string]string{
		"pgagui.control":             fmt.Sprintf(part("pgagui.control"), Latest()),
		"pgagui--unpackaged.sql":     script("create extension pgagui version 'unpackaged'"),
		"pgagui--" + latest + ".sql": script("create extension pgagui", InstallSQL(), settle),
		// Only what "pgagui migrate up" of this version has installed becomes the extension.
		"pgagui--unpackaged--" + latest + ".sql": script("alter extension pgagui update", fmt.Sprintf(part("add.sql"), Latest()), settle),
	}
	for _, m := range program().after(firstExtension) {
		files[fmt.Sprintf("pgagui--%d--%d.sql", m.Version-1, m.Version)] = script("alter extension pgagui update", sqlOf(chain{m}), settle)
	}
	return inMemory(files)
}
