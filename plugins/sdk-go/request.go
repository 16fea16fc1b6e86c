package vmhost

// The input of a policy, and how it reads JSON.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Request is the input of one turn: a key and the newest snapshot of its object. It never says
// which event woke the policy.
type Request struct {
	// Controller is the name of the controller in the description that this turn is for.
	Controller string
	// Key is the object to reconcile. A controller with a Timer has one key: of kind
	// Timer.v1.vmhost, with the controller's name and no namespace.
	Key ObjectKey
	// Object is the text that the API server wrote, without metadata.managedFields. Nil if the
	// object is gone. See [Object].
	Object json.RawMessage
	// Previous is the text as of this key's last turn that succeeded, for a controller with
	// Previous. Nil if there was none. See [Previous].
	Previous json.RawMessage
	// Deleting is only for a controller with a Finalizer: clean up, and return [Finalized] when
	// nothing is left to do.
	Deleting bool
	// Attempt is the number of failures of this key since its last success.
	Attempt uint32
	// Last is the refused effect of this key's last turn. Nil if no effect was refused.
	Last *Refusal
}

// Refusal is why the API server (or the host, before it asked the API server) refused an effect.
type Refusal struct {
	// Effect is its index in the effects of that turn, from 0. Later effects were not tried.
	Effect uint32
	// Code is the HTTP status code.
	Code uint16
	// Reason is the API server's: AlreadyExists, Conflict, Invalid, Forbidden and so on.
	Reason string
	// Message is the API server's, for display.
	Message string
}

// MapRequest holds the changes to map to keys.
type MapRequest struct {
	// Controller is the name of the controller that the keys are for.
	Controller string
	// Changes are at most 500. Several may be of one object, in order.
	Changes []Change
}

// Change is a change of an object that a watch with [MapGuest] saw.
type Change struct {
	// Old is the previous object. Nil for a new object.
	Old json.RawMessage
	// New is the current object. Nil for a deleted object.
	New json.RawMessage
}

// Object returns the request's object as a type of the policy's own, with only the fields that it
// needs; nil if the object is gone.
//
// Numbers keep all digits: in fields of type int64, float64 or [json.Number] by their type, and as
// [json.Number] in fields of type any (T may be map[string]any). A field of type [json.RawMessage]
// distinguishes null (the text null) from missing (nil).
func Object[T any](request *Request) (*T, error) {
	return Decode[T](request.Object)
}

// Previous is like [Object], for the object as of this key's last turn that succeeded.
func Previous[T any](request *Request) (*T, error) {
	return Decode[T](request.Previous)
}

// Decode is like [Object], for any text of the host, such as those of a [Change]; nil for nil.
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
