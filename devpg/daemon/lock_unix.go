//go:build unix

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
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(file, 20))
		err = fmt.Errorf("process %s holds the lock %s", strings.TrimSpace(string(holder)), path)
	}
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintln(file, os.Getpid())
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		// A child that is between fork and exec has the file open too: closing ours would leave the lock with it.
		return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
	}, nil
}
