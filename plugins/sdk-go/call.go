package vmhost

// The three calls of the host. Errors and panics become answers of the contract: the host drops an
// instance that traps, and its text is lost.

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	wire "github.com/vmhost/vmhost/plugins/sdk-go/internal/bindings/imports/vmhost_plugin_types"
	wit "github.com/vmhost/vmhost/plugins/sdk-go/internal/wit/types"
)

// exported is the policy that the host calls.
var exported Policy

// Export makes policy the component's export. Call it once, in an init function: a component's main
// never runs.
func Export(policy Policy) {
	exported = policy
}

var errNoPolicy = errors.New("the plugin exports no policy: call vmhost.Export in an init function, with Describe and Reconcile")

var errNoReconcile = errors.New("the policy has no Reconcile")

func (p Policy) describe() wit.Result[string, string] {
	text, err := guard(func() ([]byte, error) {
		if p.Describe == nil || p.doesNothing() {
			return nil, errNoPolicy
		}
		return json.Marshal(p.Describe())
	})
	if err != nil {
		return wit.Err[string, string](valid(err.Error()))
	}
	return wit.Ok[string, string](string(text))
}

func (p Policy) reconcile(request wire.Request) wire.Outcome {
	outcome, err := guard(func() (wire.Outcome, error) {
		if p.doesNothing() {
			return wire.Outcome{}, errNoPolicy
		}
		outcome, err := p.Turn(fromWire(request))
		return toWire(outcome.or(err))
	})
	if err != nil {
		return wire.Outcome{Next: wire.MakeNextRetry(valid(err.Error()))}
	}
	return outcome
}

func (p Policy) doesNothing() bool {
	return p.Reconcile == nil && p.Admit == nil && p.Convert == nil
}

func (p Policy) mapChanges(request wire.MapRequest) wit.Result[[]wire.ObjectName, string] {
	names, err := guard(func() ([]ObjectName, error) {
		if p.MapChanges == nil {
			return nil, nil
		}
		changes := make([]Change, len(request.Changes))
		for i, change := range request.Changes {
			changes[i] = Change{Old: textFromWire(change.Old), New: textFromWire(change.New)}
		}
		return p.MapChanges(&MapRequest{Controller: request.Controller, Changes: changes})
	})
	if err != nil {
		return wit.Err[[]wire.ObjectName, string](valid(err.Error()))
	}
	return wit.Ok[[]wire.ObjectName, string](namesToWire(names))
}

// guard converts a panic into an error, and logs its stack. Only a panic of the called goroutine
// can be recovered.
func guard[T any](call func() (T, error)) (result T, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
			host.Log(slog.LevelError, valid(fmt.Sprintf("%v\n%s", err, debug.Stack())))
		}
	}()
	return call()
}
