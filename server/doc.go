// Package server gives every language and every browser what package pgagui gives Go: it records
// agents, and lets clients attach, branch and read over HTTP.
package server
