package address

import (
	"strings"
	"testing"
)

func TestErrorsHoldNothingOfThePassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://u:s3cret%zz@h/db", "postgres://u:s3cret@h:port/db", "postgres://u:33/cret@h/db",
		"postgres://u:s3cret@[::1/db", "user=u password=s3cret host=h port=x", "user=u password='s3cret host=h", `password=\'s3cret x`,
		"host=127.0.0.1 port=1 password = s3cret bogus", "password = 's3cret", "postgres://h/db?password=s3cret&sslmode=bad", "postgress://u:s3cret@h/db",
		"u:s3cret@h/db", "postgres://u:s3 cret@h/db", "postgres:// u:s3cret@h:99999999/db", "password=`s3cret port=x", "postgresql://u:p@cret@h/db",
	} {
		if _, err := Parse(address); err == nil || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: got %v", address, err)
		}
	}
}

func TestAddressesAreRead(t *testing.T) {
	t.Parallel()
	for address, host := range map[string]string{
		"postgres://u:p%2Fw@h:1/db": "h", "postgres://u@h/db?application_name=a@b": "h", "host=h password=p@w": "h", "postgres:///db?host=/run&user=a@b": "/run",
		"postgresql://u:p%40w@h/d%40b": "h", "postgres://u:p?w@h/db": "h",
	} {
		if config, err := Parse(address); err != nil || config.Host != host {
			t.Errorf("%s: %v, %v", address, config, err)
		}
	}
}
