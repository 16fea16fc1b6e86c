// The conformance guest in Go, with a case for each part of the contract. ../README.md describes
// each case.
package main

import (
	"context"

	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/vmhost/vmhost/plugins/sdk-go"
	"github.com/vmhost/vmhost/plugins/sdk-go/meta"
)

// testCase is the object. A raw field distinguishes null from missing, and keeps a number as it is
// written.
type testCase struct {
	Spec struct {
		Case         string
		Number, Huge raw
		A, B, C      raw
		Text, Empty  string
		Deep         any
	}
}

func reconcile(request *vmhost.Request) (vmhost.Outcome, error) {
	object, err := vmhost.Object[testCase](request)
	if err != nil {
		return vmhost.Outcome{}, err
	}
	if object == nil || object.Spec.Case == "" {
		return answer(request, echo(request), nil)
	}
	spec := object.Spec
	switch spec.Case {
	case "echo":
		return answer(request, echo(request), nil)
	case "effects":
		return tenEffects(), nil
	case "in-cluster":
		return inClusters(), nil
	case "next-await-change":
		return vmhost.AwaitChange(), nil
	case "next-requeue-after":
		return vmhost.RequeueAfter(math.MaxUint32 * time.Millisecond), nil
	case "next-requeue":
		return vmhost.Requeue(), nil
	case "next-retry":
		return vmhost.Retry(`later, "please"`), nil
	case "next-fail":
		return vmhost.Fail("never: ☃"), nil
	case "next-finalized":
		return vmhost.Finalized(), nil
	case "number":
		return answer(request, []raw{spec.Number, spec.Huge}, nil)
	case "null":
		return answer(request, []string{presence(spec.A), presence(spec.B), presence(spec.C)}, nil)
	case "text":
		return answer(request, []string{spec.Text, spec.Empty}, nil)
	case "deep":
		return answer(request, depth(spec.Deep), nil)
	case "size":
		return answer(request, len(request.Object), nil)
	case "log":
		logLines()
		return answer(request, raw("null"), nil)
	}
	return byCall(request, spec.Case)
}

func byCall(request *vmhost.Request, name string) (vmhost.Outcome, error) {
	var value any
	var err error
	switch name {
	case "get":
		value, err = get()
	case "get-many":
		value, err = getMany()
	case "list":
		value, err = list()
	case "live":
		value, err = live()
	case "read-errors":
		value, err = readErrors()
	case "settings":
		value = settings()
	case "http":
		value, err = sendRequests()
	case "senses":
		value = senses()
	case "error":
		err = errors.New("broken on purpose")
	case "crash":
		value = []int{}[len(name)]
	case "memory":
		for {
			kept = append(kept, make([]byte, 1<<20))
		}
	case "loop":
		for {
			spins++
		}
	case "state":
		value = calls
		calls++
	default:
		return vmhost.Fail("unknown case " + name), nil
	}
	return answer(request, value, err)
}

// State that outlives a call.
var (
	kept  [][]byte
	spins uint64
	calls int
)

func answer(request *vmhost.Request, value any, err error) (vmhost.Outcome, error) {
	if err != nil {
		return vmhost.Outcome{}, err
	}
	return vmhost.AwaitChange(vmhost.MergePatch{Key: request.Key, Body: map[string]any{"answer": value}}), nil
}

func echo(request *vmhost.Request) any {
	var last any
	if l := request.Last; l != nil {
		last = map[string]any{"effect": l.Effect, "code": l.Code, "reason": l.Reason, "message": l.Message}
	}
	key := request.Key
	return map[string]any{
		"controller": request.Controller,
		"key": map[string]any{
			"group": key.Kind.Group, "version": key.Kind.Version, "kind": key.Kind.Kind, "namespace": orNull(key.Namespace), "name": key.Name,
		},
		"object":   orNull(string(request.Object)),
		"previous": orNull(string(request.Previous)),
		"deleting": request.Deleting,
		"attempt":  request.Attempt,
		"last":     last,
	}
}

func presence(value raw) string {
	switch string(value) {
	case "":
		return "missing"
	case "null":
		return "null"
	}
	return "value"
}

func senses() any {
	started := time.Now()
	set := map[int]bool{}
	for number := range 20 {
		set[number] = true
	}
	order := []int{}
	for number := range set {
		order = append(order, number)
	}
	return map[string]any{"wall": started.UnixNano(), "chance": rand.Uint64(), "order": order, "elapsed": time.Since(started)}
}

func depth(value any) int {
	list, ok := value.([]any)
	if !ok {
		return 0
	}
	if len(list) == 0 {
		return 1
	}
	return 1 + depth(list[0])
}

func logLines() {
	for _, level := range []slog.Level{vmhost.LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		slog.Log(context.Background(), level, "one\ntwo ☃")
	}
	fmt.Println("printed")
}

func mapChanges(request *vmhost.MapRequest) ([]vmhost.ObjectName, error) {
	if request.Controller != "cases" {
		return nil, fmt.Errorf("cannot map %s", request.Controller)
	}
	var names []vmhost.ObjectName
	for _, change := range request.Changes {
		text := change.New
		if text == nil {
			text = change.Old
		}
		object, err := vmhost.Decode[struct{ Metadata meta.ObjectMeta }](text)
		if err != nil {
			return nil, err
		}
		names = append(names, vmhost.ObjectName{Namespace: object.Metadata.Namespace, Name: object.Metadata.Name})
	}
	return names, nil
}

func init() {
	vmhost.Export(vmhost.Policy{Describe: describe, Reconcile: reconcile, MapChanges: mapChanges, Admit: admit, Convert: convert})
}

func main() {}
