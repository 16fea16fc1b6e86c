package vmhost

// The host as a policy sees it while it runs.

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

// Host is what a policy may ask while it runs: on WebAssembly the real host, in native tests [github.com/vmhost/vmhost/plugins/sdk-go/vmhosttest.Host].
// Policies use [Get], [List], [Setting] and log/slog, which are easier.
type Host interface {
	// Log writes one line.
	Log(level slog.Level, line string)
	// Setting is the value of a setting, and whether the operator gave it.
	Setting(name string) (string, bool)
	// Get is the text of an object of the cache; nil if it does not exist.
	Get(key ObjectKey) (json.RawMessage, error)
	// GetMany is the text of each object of the cache, in one crossing and in the order of keys; nil for one that does not exist.
	GetMany(keys []ObjectKey) ([]json.RawMessage, error)
	// List is one page of objects of the cache.
	List(query Query) (Page[json.RawMessage], error)
	// GetLive is as Get, from the API server itself.
	GetLive(key ObjectKey) (json.RawMessage, error)
	// ListLive is as List, from the API server itself.
	ListLive(query Query) (Page[json.RawMessage], error)
}

// WithHost calls the policy with this host around it. For tests; one at a time.
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

// Setting is the value that the operator gave this plugin (--setting PLUGIN.NAME=VALUE), and whether there is one.
func Setting(name string) (string, bool) {
	return host.Setting(valid(name))
}

// NotWatchedError says that the description does not let this controller read the kind (or not in this namespace, or only live).
type NotWatchedError struct{ Kind string }

// TooLargeError says that the answer is larger than this limit in bytes: ask for fewer objects, or for MetadataOnly.
type TooLargeError struct{ Limit uint32 }

// InvalidError says why the question makes no sense: a bad selector, an index that the description does not declare, a foreign continue token.
type InvalidError struct{ Reason string }

// UnavailableError says why a live read was not answered, or what the API server said.
type UnavailableError struct{ Reason string }

func (e NotWatchedError) Error() string {
	return "the description does not let this controller read " + e.Kind
}

func (e TooLargeError) Error() string {
	return fmt.Sprintf("the answer is larger than %d bytes", e.Limit)
}

func (e InvalidError) Error() string { return e.Reason }

func (e UnavailableError) Error() string { return "the live read failed: " + e.Reason }

// noHost is what a native test finds outside of a run.
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
