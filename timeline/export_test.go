package timeline

// Folded is how many events have been folded.
func (t *Timeline) Folded() int {
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	return t.line.folded
}

// Used is the memory of a cache, and the number of its timelines.
func (c *Cache) Used() (bytes int64, lines int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used, c.order.Len()
}
