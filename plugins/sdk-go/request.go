package vmhost

// What a policy is given, and how it reads JSON.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Request is one turn's input: a key and the newest snapshot of its object. It never says which event woke the policy.
type Request struct {
	// Controller is which of the plugin's controllers this turn is for: a name from its description.
	Controller string
	// Key is the object that is to be looked at. A controller with a Timer has one key: of kind Timer.v1.vmhost, with the controller's name and no namespace.
	Key ObjectKey
	// Object is the text as the API server wrote it, less metadata.managedFields. Nil: the object is gone. See [Object].
	Object json.RawMessage
	// Previous is the text as of this key's last turn that succeeded, for a controller with Previous. Nil: there was none. See [Previous].
	Previous json.RawMessage
	// Deleting: only for a controller with a Finalizer. Clean up, and return [Finalized] when nothing is left to do.
	Deleting bool
	// Attempt is how often this key has failed since its last success.
	Attempt uint32
	// Last is the effect of this key's last turn that was refused. Nil: none was.
	Last *Refusal
}

// Refusal is why the API server (or the host, before it asked the API server) refused an effect.
type Refusal struct {
	// Effect is its position in the effects of that turn, from 0. Those behind it were not tried.
	Effect uint32
	// Code is the HTTP status code.
	Code uint16
	// Reason is the API server's: AlreadyExists, Conflict, Invalid, Forbidden and so on.
	Reason string
	// Message is the API server's, for people.
	Message string
}

// MapRequest holds changes that are to be mapped to keys.
type MapRequest struct {
	// Controller is which of the plugin's controllers the keys are for.
	Controller string
	// Changes are at most 500. Several may be of one object, in their order.
	Changes []Change
}

// Change is a change of an object that a watch with [MapGuest] saw.
type Change struct {
	// Old is the object before. Nil: it is new.
	Old json.RawMessage
	// New is the object now. Nil: it is gone.
	New json.RawMessage
}

// Object is the request's object as a type of the policy's own, which names only the fields that it needs; nil: the object is gone.
//
// Numbers keep all digits: in fields of type int64, float64 or [json.Number] as these say, as [json.Number] where the type is any (T may be map[string]any).
// A field of type [json.RawMessage] tells null (the text null) from missing (nil).
func Object[T any](request *Request) (*T, error) {
	return Decode[T](request.Object)
}

// Previous is as [Object], for the object as of this key's last turn that succeeded.
func Previous[T any](request *Request) (*T, error) {
	return Decode[T](request.Previous)
}

// Decode is as [Object], for any text of the host's, such as those of a [Change]; nil for nil.
func Decode[T any](text json.RawMessage) (*T, error) {
	if text == nil {
		return nil, nil
	}
	value, err := decode[T](text)
	if err != nil {
		return nil, fmt.Errorf("the object cannot be read: %w", err)
	}
	return value, nil
}

func decode[T any](text json.RawMessage) (*T, error) {
	value := new(T)
	if raw, ok := any(value).(*json.RawMessage); ok {
		*raw = text
		return value, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one JSON value")
	}
	return value, nil
}
