// Package sqlc holds the schema agui in the form that sqlc (https://sqlc.dev) reads, for programs
// that query it through sqlc.
package sqlc

import _ "embed"

// Schema declares the tables, the views and the functions of the schema agui with the types of
// their arguments and results. It is to be read by sqlc, not to be run: the functions have no
// bodies, and views and types are declared as tables, which is how sqlc knows their columns.
//
//go:embed agui.sql
var Schema string
