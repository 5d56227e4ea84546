//go:build !linux

package testdb

// folder is where the server for tests keeps its data. Empty: the folder for temporary files.
func folder() string { return "" }
