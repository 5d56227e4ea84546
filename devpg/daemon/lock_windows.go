package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// TakeLock takes the lock of a file, which it makes if it is not there, until unlock is called or this process ends. If another
// process holds the lock, the error names that process.
func TakeLock(path string) (unlock func() error, err error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	// While this is open, others may read the file, and not open it to write.
	handle, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, syscall.FILE_SHARE_READ, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	const sharingViolation = syscall.Errno(32)
	if errors.Is(err, sharingViolation) {
		return nil, fmt.Errorf("process %s holds the lock %s", readHolder(path), path)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(handle), path)
	err = file.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintln(file, os.Getpid())
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}

func readHolder(path string) string {
	file, err := os.Open(path) // lets the holder write
	if err != nil {
		return ""
	}
	defer file.Close()
	holder, _ := io.ReadAll(io.LimitReader(file, 20))
	return strings.TrimSpace(string(holder))
}
