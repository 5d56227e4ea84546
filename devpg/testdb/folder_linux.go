package testdb

import "syscall"

// memoryFolder is a file system in memory.
const memoryFolder = "/dev/shm"

// Folder is where servers for tests keep their data: in memory if there is room, because tests create and drop databases all the
// time. Empty: the folder for temporary files.
func Folder() string {
	const room = 8 << 30
	var system syscall.Statfs_t
	if err := syscall.Statfs(memoryFolder, &system); err != nil || int64(system.Bavail)*system.Bsize < room {
		return ""
	}
	return memoryFolder
}
