package vmhost

// Converts between the SDK's types and the records of the contract. All strings are valid UTF-8,
// and JSON where the contract requires JSON: anything else would trap.

import (
	"encoding/json"
	"fmt"
	"strings"
	"unsafe"

	wire "github.com/vmhost/vmhost/plugins/sdk-go/internal/bindings/imports/vmhost_plugin_types"
	wit "github.com/vmhost/vmhost/plugins/sdk-go/internal/wit/types"
)

func fromWire(r wire.Request) *Request {
	request := &Request{
		Controller: r.Controller,
		Key:        keyFromWire(r.Key),
		Object:     textFromWire(r.Object),
		Previous:   textFromWire(r.Previous),
		Deleting:   r.Deleting,
		Attempt:    r.Attempt,
	}
	if r.Last.IsSome() {
		last := r.Last.Some()
		request.Last = &Refusal{Effect: last.Effect, Code: last.Code, Reason: last.Reason, Message: last.Message}
	}
	return request
}

func keyFromWire(k wire.ObjectKey) ObjectKey {
	return ObjectKey{Kind(k.Kind), k.Namespace.SomeOr(""), k.Name}
}

// textFromWire takes over the string's memory: the host wrote it for this call, and no other code
// refers to it.
func textFromWire(text wit.Option[string]) json.RawMessage {
	if text.IsNone() {
		return nil
	}
	return bytesOf(text.Some())
}

func bytesOf(text string) json.RawMessage {
	return unsafe.Slice(unsafe.StringData(text), len(text))
}

func toWire(outcome Outcome) (wire.Outcome, error) {
	effects := make([]wire.Effect, len(outcome.Effects))
	for i, effect := range outcome.Effects {
		var err error
		if effects[i], err = effectToWire(effect); err != nil {
			return wire.Outcome{}, fmt.Errorf("effect %d: %w", i, err)
		}
	}
	next, err := nextToWire(outcome.Next)
	return wire.Outcome{Effects: effects, Next: next}, err
}

func nextToWire(next Next) (wire.Next, error) {
	switch next.Step {
	case StepAwaitChange:
		return wire.MakeNextAwaitChange(), nil
	case StepRequeueAfter:
		return wire.MakeNextRequeueAfterMs(milliseconds(next.After)), nil
	case StepRequeue:
		return wire.MakeNextRequeue(), nil
	case StepRetry:
		return wire.MakeNextRetry(valid(next.Message)), nil
	case StepFail:
		return wire.MakeNextFail(valid(next.Message)), nil
	case StepFinalized:
		return wire.MakeNextFinalized(), nil
	}
	return wire.Next{}, fmt.Errorf("there is no step %d", next.Step)
}

func effectToWire(effect Effect) (wire.Effect, error) {
	switch e := effect.(type) {
	case Apply:
		object, err := document("the object of an apply", e.Object)
		return wire.MakeEffectApply(wire.Apply{
			Object: object, Subresource: some(e.Subresource), Force: !e.Polite, CreateIfAbsent: !e.Existing, IfVersion: some(e.IfVersion),
		}), err
	case MergePatch:
		body, err := document(fmt.Sprintf("the patch of %v", e.Key), e.Body)
		return wire.MakeEffectPatch(wire.Patch{
			Key: keyToWire(e.Key), Subresource: some(e.Subresource), Type: wire.PatchType_Merge, Body: body, IfVersion: some(e.IfVersion),
		}), err
	case JSONPatch:
		body, err := document(fmt.Sprintf("the patch of %v", e.Key), append([]Operation{}, e.Operations...))
		return wire.MakeEffectPatch(wire.Patch{
			Key: keyToWire(e.Key), Subresource: some(e.Subresource), Type: wire.PatchType_Json, Body: body, IfVersion: some(e.IfVersion),
		}), err
	case Create:
		object, err := document("the object to create", e.Object)
		return wire.MakeEffectCreate(wire.Create{Object: object}), err
	case Delete:
		propagation := wit.None[wire.Propagation]()
		switch {
		case e.Propagation > Orphan:
			return wire.Effect{}, fmt.Errorf("there is no propagation %d", e.Propagation)
		case e.Propagation > DefaultPropagation:
			propagation = wit.Some(wire.Propagation(e.Propagation - Background))
		}
		return wire.MakeEffectDelete(wire.Delete{Key: keyToWire(e.Key), Uid: some(e.UID), IfVersion: some(e.IfVersion), Propagation: propagation}), nil
	case InCluster:
		return inClusterToWire(e)
	case Event:
		if e.Type > Warning {
			return wire.Effect{}, fmt.Errorf("there is no event type %d", e.Type)
		}
		related := wit.None[wire.ObjectKey]()
		if e.Related != nil {
			related = wit.Some(keyToWire(*e.Related))
		}
		return wire.MakeEffectEvent(wire.Event{
			Type: wire.EventType(e.Type), Reason: valid(e.Reason), Action: valid(e.Action), Note: valid(e.Note), Related: related,
		}), nil
	case Other:
		body, err := document("the body of "+e.Name, e.Body)
		return wire.MakeEffectOther(wire.Other{Name: valid(e.Name), Body: body}), err
	}
	return wire.Effect{}, fmt.Errorf("%T is no effect; effects are values, not pointers", effect)
}

// MarshalJSON omits the value from operations that have none in RFC 6902.
func (o Operation) MarshalJSON() ([]byte, error) {
	if o.Op == "remove" {
		return json.Marshal(struct {
			Op   string `json:"op"`
			Path string `json:"path"`
		}{o.Op, o.Path})
	}
	return json.Marshal(struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}{o.Op, o.Path, o.Value})
}

func document(what string, value any) (string, error) {
	if value == nil {
		return "", fmt.Errorf("%s is nil", what)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("%s cannot be written as JSON: %w", what, err)
	}
	return valid(string(text)), nil
}

func keyToWire(k ObjectKey) wire.ObjectKey {
	kind := wire.Gvk{Group: valid(k.Kind.Group), Version: valid(k.Kind.Version), Kind: valid(k.Kind.Kind)}
	return wire.ObjectKey{Kind: kind, Namespace: some(k.Namespace), Name: valid(k.Name)}
}

func namesToWire(names []ObjectName) []wire.ObjectName {
	list := make([]wire.ObjectName, len(names))
	for i, name := range names {
		list[i] = wire.ObjectName{Namespace: some(name.Namespace), Name: valid(name.Name)}
	}
	return list
}

// some returns none for the empty string: no optional field of the contract gives the empty string
// a meaning of its own.
func some(text string) wit.Option[string] {
	if text == "" {
		return wit.None[string]()
	}
	return wit.Some(valid(text))
}

func valid(text string) string {
	return strings.ToValidUTF8(text, "\uFFFD")
}
