// A receiver of notifications with Go's standard library.
// WEBHOOK_SECRET=whsec_… go run receiver.go

package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

var secret = []byte(os.Getenv("WEBHOOK_SECRET"))

const (
	tolerance    = 300 * time.Second
	maxBodyBytes = 1 << 20
	maxCalls     = 10_000
)

type notification struct {
	CallID   string `json:"callId"`
	EventID  string `json:"eventId"`
	Sequence int    `json:"sequence"`
	Status   string `json:"status"`
}

type call struct {
	sequence int
	status   string
	seen     map[string]bool
}

// In production, use a table that all receiving processes share. Keep a call's row until no replay
// of its notifications can arrive.
var (
	lock  sync.Mutex
	calls = map[string]*call{}
	order []string
)

// isSigned reports whether the timestamp is recent and one of the signatures matches the raw body.
// There are two signatures while the secret is being rotated.
func isSigned(rawBody []byte, header string) bool {
	t := ""
	var signatures []string
	for _, part := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if name == "t" {
			t = value
		} else if name == "v1" {
			signatures = append(signatures, value)
		}
	}
	seconds, err := strconv.ParseInt(t, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(t + "."))
	mac.Write(rawBody)
	expected := mac.Sum(nil)
	for _, signature := range signatures {
		given, err := hex.DecodeString(signature)
		if err == nil && hmac.Equal(expected, given) {
			return true
		}
	}
	return false
}

// take ignores repetitions, and keeps late notifications from overwriting newer ones.
func take(n notification) string {
	lock.Lock()
	defer lock.Unlock()
	known := calls[n.CallID]
	if known == nil {
		known = &call{seen: map[string]bool{}}
		calls[n.CallID] = known
		if order = append(order, n.CallID); len(order) > maxCalls {
			delete(calls, order[0])
			order = order[1:]
		}
	}
	if known.seen[n.EventID] {
		return "duplicate"
	}
	known.seen[n.EventID] = true
	if n.Sequence < known.sequence {
		return "late"
	}
	known.sequence = n.Sequence
	// An event that `notifyEvents` selected is not a status of the call.
	if n.Status != "Event" {
		known.status = n.Status
	}
	return "applied"
}

func receive(response http.ResponseWriter, request *http.Request) {
	rawBody, err := io.ReadAll(http.MaxBytesReader(response, request.Body, maxBodyBytes))
	if err != nil {
		response.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if !isSigned(rawBody, request.Header.Get("Gateway-Signature")) {
		response.WriteHeader(http.StatusUnauthorized)
		return
	}
	var n notification
	if json.Unmarshal(rawBody, &n) != nil {
		response.WriteHeader(http.StatusBadRequest)
		return
	}
	// Respond first and do the work afterwards, because the gateway waits at most 10 s.
	io.WriteString(response, take(n))
}

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "4000"
	}
	http.HandleFunc("/", receive)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, nil))
}
