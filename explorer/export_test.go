package explorer

import (
	"maps"
	"slices"
)

// Routes are the routes of a Handler but those of its embedded files.
func (h *Handler) Routes() []string {
	routes := maps.Clone(h.routes)
	for path := range assets {
		delete(routes, "GET /"+path)
	}
	return slices.Sorted(maps.Keys(routes))
}

// MarkdownHTML is what becomes of what an agent said.
var MarkdownHTML = markdownHTML
