//go:build !linux

package testdb

// Folder is where servers for tests keep their data. Empty: the folder for temporary files.
func Folder() string { return "" }
