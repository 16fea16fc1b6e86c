//go:build wasip1

package vmhost

// The real host, behind the generated bindings.

import (
	"encoding/json"
	"log/slog"

	"github.com/vmhost/vmhost/plugins/sdk-go/internal/bindings/exports/export_vmhost_plugin_controller"
	_ "github.com/vmhost/vmhost/plugins/sdk-go/internal/bindings/exports/wit_exports" // the component's exports
	"github.com/vmhost/vmhost/plugins/sdk-go/internal/bindings/imports/vmhost_plugin_cluster"
	"github.com/vmhost/vmhost/plugins/sdk-go/internal/bindings/imports/vmhost_plugin_config"
	"github.com/vmhost/vmhost/plugins/sdk-go/internal/bindings/imports/vmhost_plugin_log"
	wire "github.com/vmhost/vmhost/plugins/sdk-go/internal/bindings/imports/vmhost_plugin_types"
	"github.com/vmhost/vmhost/plugins/sdk-go/internal/wit/runtime"
	wit "github.com/vmhost/vmhost/plugins/sdk-go/internal/wit/types"
)

var host Host = realHost{}

func init() {
	slog.SetDefault(slog.New(NewLogHandler()))
	export_vmhost_plugin_controller.Describe = func() wit.Result[string, string] { return exported.describe() }
	export_vmhost_plugin_controller.Reconcile = func(r wire.Request) wire.Outcome { return exported.reconcile(r) }
	export_vmhost_plugin_controller.MapChanges = func(r wire.MapRequest) wit.Result[[]wire.ObjectName, string] { return exported.mapChanges(r) }
}

type realHost struct{}

func (realHost) Log(level slog.Level, line string) {
	vmhost_plugin_log.Log(levelToWire(level), line)
}

func (realHost) Setting(name string) (string, bool) {
	value := runtime.Crossing(func() wit.Option[string] { return vmhost_plugin_config.Get(name) })
	return value.SomeOr(""), value.IsSome()
}

func (realHost) Get(key ObjectKey) (json.RawMessage, error) {
	return one(key, vmhost_plugin_cluster.Get)
}

func (realHost) GetLive(key ObjectKey) (json.RawMessage, error) {
	return one(key, vmhost_plugin_cluster.GetLive)
}

func (realHost) GetMany(keys []ObjectKey) ([]json.RawMessage, error) {
	list := make([]wire.ObjectKey, len(keys))
	for i, key := range keys {
		list[i] = keyToWire(key)
	}
	answer := runtime.Crossing(func() wit.Result[[]wit.Option[string], vmhost_plugin_cluster.ReadError] {
		return vmhost_plugin_cluster.GetMany(list)
	})
	if answer.IsErr() {
		return nil, readError(answer.Err())
	}
	objects := make([]json.RawMessage, len(keys))
	for i, text := range answer.Ok() {
		objects[i] = textFromWire(text)
	}
	return objects, nil
}

func (realHost) List(query Query) (Page[json.RawMessage], error) {
	return page(query, vmhost_plugin_cluster.List)
}

func (realHost) ListLive(query Query) (Page[json.RawMessage], error) {
	return page(query, vmhost_plugin_cluster.ListLive)
}

type textOrError = wit.Result[wit.Option[string], vmhost_plugin_cluster.ReadError]

func one(key ObjectKey, get func(wire.ObjectKey) textOrError) (json.RawMessage, error) {
	answer := runtime.Crossing(func() textOrError { return get(keyToWire(key)) })
	if answer.IsErr() {
		return nil, readError(answer.Err())
	}
	return textFromWire(answer.Ok()), nil
}

type pageOrError = wit.Result[vmhost_plugin_cluster.Page, vmhost_plugin_cluster.ReadError]

func page(query Query, list func(vmhost_plugin_cluster.Query) pageOrError) (Page[json.RawMessage], error) {
	index := wit.None[vmhost_plugin_cluster.IndexMatch]()
	if query.Index != nil {
		index = wit.Some(vmhost_plugin_cluster.IndexMatch{Name: valid(query.Index.Name), Value: valid(query.Index.Value)})
	}
	answer := runtime.Crossing(func() pageOrError {
		return list(vmhost_plugin_cluster.Query{
			Kind:          keyToWire(ObjectKey{Kind: query.Kind}).Kind,
			Namespace:     some(query.Namespace),
			LabelSelector: some(query.LabelSelector),
			Index:         index,
			Owner:         some(query.Owner),
			MetadataOnly:  query.MetadataOnly,
			Limit:         query.Limit,
			Continue:      some(query.Continue),
		})
	})
	if answer.IsErr() {
		return Page[json.RawMessage]{}, readError(answer.Err())
	}
	found := answer.Ok()
	objects := make([]json.RawMessage, len(found.Objects))
	for i, text := range found.Objects {
		objects[i] = bytesOf(text)
	}
	return Page[json.RawMessage]{Objects: objects, Continue: found.Continue.SomeOr("")}, nil
}

func readError(err vmhost_plugin_cluster.ReadError) error {
	switch err.Tag() {
	case vmhost_plugin_cluster.ReadError_NotWatched:
		return NotWatchedError{err.NotWatched()}
	case vmhost_plugin_cluster.ReadError_TooLarge:
		return TooLargeError{err.TooLarge()}
	case vmhost_plugin_cluster.ReadError_Invalid:
		return InvalidError{err.Invalid()}
	default:
		return UnavailableError{err.Unavailable()}
	}
}

func levelToWire(level slog.Level) vmhost_plugin_log.Level {
	switch {
	case level < slog.LevelDebug:
		return vmhost_plugin_log.Level_Trace
	case level < slog.LevelInfo:
		return vmhost_plugin_log.Level_Debug
	case level < slog.LevelWarn:
		return vmhost_plugin_log.Level_Info
	case level < slog.LevelError:
		return vmhost_plugin_log.Level_Warn
	default:
		return vmhost_plugin_log.Level_Error
	}
}
