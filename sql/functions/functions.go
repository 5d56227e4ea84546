// Package functions holds the sources of the schemas agui and agui_internal but for their tables: functions, types and views, one file
// an area. Package sql/schema makes the migrations of them. README.md says what belongs where.
package functions

import "embed"

// Files are the sources, FLOOR/AREA.sql.
//
//go:embed */*.sql
var Files embed.FS
