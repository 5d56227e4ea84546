// Package webhook signs and sends requests as Standard Webhooks has it (https://www.standardwebhooks.com).
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// secretPrefix is what a secret begins with. The key behind it is in base64.
const secretPrefix = "whsec_"

// Sign returns the header webhook-signature of a request.
func Sign(secret, id string, at time.Time, body []byte) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil || len(key) == 0 || !strings.HasPrefix(secret, secretPrefix) {
		return "", fmt.Errorf("the secret is not valid (expected %s and a key in base64)", secretPrefix)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.", id, at.Unix())
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}
