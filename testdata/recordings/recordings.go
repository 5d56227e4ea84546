// Package recordings holds event streams that AG-UI frameworks emitted; README.md says which.
package recordings

import "embed"

// Files are the recordings.
//
//go:embed *.ndjson *.sse
var Files embed.FS
