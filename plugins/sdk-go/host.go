package vmhost

// The host as seen by a running policy.

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

// Host is what a policy may query while it runs: on WebAssembly the real host, in native tests
// [github.com/vmhost/vmhost/plugins/sdk-go/vmhosttest.Host]. Policies use [Get], [List], [Setting]
// and log/slog, which are easier.
type Host interface {
	// Log writes one line.
	Log(level slog.Level, line string)
	// Setting returns the value of a setting, and whether the operator set it.
	Setting(name string) (string, bool)
	// Get returns the text of an object in the cache; nil if it does not exist.
	Get(key ObjectKey) (json.RawMessage, error)
	// GetMany returns the text of each object in the cache with one call of the host, in the order
	// of keys; nil for an object that does not exist.
	GetMany(keys []ObjectKey) ([]json.RawMessage, error)
	// List returns one page of objects in the cache.
	List(query Query) (Page[json.RawMessage], error)
	// GetLive is like Get, but asks the API server.
	GetLive(key ObjectKey) (json.RawMessage, error)
	// ListLive is like List, but asks the API server.
	ListLive(query Query) (Page[json.RawMessage], error)
}

// WithHost runs the policy with this host. For tests; one at a time.
func WithHost(h Host, policy func()) {
	before, logger := host, slog.Default()
	host = h
	slog.SetDefault(slog.New(NewLogHandler()))
	defer func() {
		host = before
		slog.SetDefault(logger)
	}()
	policy()
}

// Setting returns the value that the operator gave this plugin (--setting PLUGIN.NAME=VALUE), and
// whether there is one.
func Setting(name string) (string, bool) {
	return host.Setting(valid(name))
}

// NotWatchedError says that the description does not let this controller read the kind (or not in
// this namespace, or only live).
type NotWatchedError struct{ Kind string }

// TooLargeError says that the answer is larger than this limit in bytes: query fewer objects, or
// use MetadataOnly.
type TooLargeError struct{ Limit uint32 }

// InvalidError says why the query is invalid: a bad selector, an index that the description does
// not declare, a foreign continue token.
type InvalidError struct{ Reason string }

// UnavailableError says why a live read was not answered, or contains the API server's error.
type UnavailableError struct{ Reason string }

func (e NotWatchedError) Error() string {
	return "the description does not let this controller read " + e.Kind
}

func (e TooLargeError) Error() string {
	return fmt.Sprintf("the answer is larger than %d bytes", e.Limit)
}

func (e InvalidError) Error() string { return e.Reason }

func (e UnavailableError) Error() string { return "the live read failed: " + e.Reason }

// noHost is the host outside of a test's run.
type noHost struct{}

var errNoHost = UnavailableError{"there is no host in a native test; call the policy within a run of vmhosttest.Host"}

func (noHost) Log(slog.Level, string)                         {}
func (noHost) Setting(string) (string, bool)                  { return "", false }
func (noHost) Get(ObjectKey) (json.RawMessage, error)         { return nil, errNoHost }
func (noHost) GetMany([]ObjectKey) ([]json.RawMessage, error) { return nil, errNoHost }
func (noHost) List(Query) (Page[json.RawMessage], error)      { return Page[json.RawMessage]{}, errNoHost }
func (noHost) GetLive(ObjectKey) (json.RawMessage, error)     { return nil, errNoHost }
func (noHost) ListLive(Query) (Page[json.RawMessage], error) {
	return Page[json.RawMessage]{}, errNoHost
}
