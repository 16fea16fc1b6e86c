package vmhost

// Typed reads of other objects, from the host's cache and live. The description must name all kinds
// that are read.

import (
	"encoding/json"
	"fmt"
)

// Query selects the objects to list. All conditions must hold.
type Query struct {
	Kind Kind
	// Namespace is empty for all namespaces that the host watches.
	Namespace string
	// LabelSelector is in kubectl's form: app=web,tier in (a,b),!legacy. If empty, all objects.
	LabelSelector string
	// Index requires a value in an index of the description. Not for live reads.
	Index *IndexMatch
	// Owner requires an owner reference with this uid. Not for live reads.
	Owner string
	// MetadataOnly returns only apiVersion, kind and metadata of each object.
	MetadataOnly bool
	// Limit is the maximum number of objects in one page; 0: 500.
	Limit uint32
	// Continue is the value from the previous page. Only [ListPage] and [ListPageLive] need it.
	Continue string
}

// IndexMatch is a value in an index: a string, or a number or boolean in JSON form.
type IndexMatch struct {
	Name, Value string
}

// Page is one answer to a [Query].
type Page[T any] struct {
	// Objects are ordered by namespace and name.
	Objects []T
	// Continue is for the next page; empty after the last page.
	Continue string
}

// Get returns one object of the cache; nil if it does not exist. T has only the fields that the
// policy needs; [json.RawMessage] is the unchanged text. An error is, or wraps, one of
// [NotWatchedError], [TooLargeError], [InvalidError] and [UnavailableError], or says why the text
// does not fit T.
func Get[T any](key ObjectKey) (*T, error) {
	text, err := host.Get(key)
	return read[T](key, text, err)
}

// GetLive is like [Get], but asks the API server.
func GetLive[T any](key ObjectKey) (*T, error) {
	text, err := host.GetLive(key)
	return read[T](key, text, err)
}

// GetMany returns many objects of the cache with one call of the host, in the order of keys; nil
// for an object that does not exist.
func GetMany[T any](keys []ObjectKey) ([]*T, error) {
	texts, err := host.GetMany(keys)
	if err != nil {
		return nil, fmt.Errorf("%d objects cannot be read: %w", len(keys), err)
	}
	objects := make([]*T, len(keys))
	for i, text := range texts {
		if objects[i], err = read[T](keys[i], text, nil); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// List returns all matching objects of the cache, page by page.
func List[T any](query Query) ([]T, error) {
	return all[T](query, host.List)
}

// ListLive is like [List], but asks the API server.
func ListLive[T any](query Query) ([]T, error) {
	return all[T](query, host.ListLive)
}

// ListPage returns one page of objects of the cache.
func ListPage[T any](query Query) (Page[T], error) {
	return onePage[T](query, host.List)
}

// ListPageLive is like [ListPage], but asks the API server.
func ListPageLive[T any](query Query) (Page[T], error) {
	return onePage[T](query, host.ListLive)
}

// Count returns the number of matching objects in the cache. Only metadata is passed to the policy.
func Count(query Query) (int, error) {
	query.MetadataOnly = true
	objects, err := List[json.RawMessage](query)
	return len(objects), err
}

func read[T any](key ObjectKey, text json.RawMessage, err error) (*T, error) {
	if err == nil && text == nil {
		return nil, nil
	}
	var value *T
	if err == nil {
		value, err = decode[T](text)
	}
	if err != nil {
		return nil, fmt.Errorf("%v cannot be read: %w", key, err)
	}
	return value, nil
}

func all[T any](query Query, list func(Query) (Page[json.RawMessage], error)) ([]T, error) {
	var objects []T
	for {
		page, err := onePage[T](query, list)
		if err != nil {
			return nil, err
		}
		objects = append(objects, page.Objects...)
		if page.Continue == "" {
			return objects, nil
		}
		query.Continue = page.Continue
	}
}

func onePage[T any](query Query, list func(Query) (Page[json.RawMessage], error)) (Page[T], error) {
	texts, err := list(query)
	if err != nil {
		return Page[T]{}, fmt.Errorf("the list of %s cannot be read: %w", query.Kind.Kind, err)
	}
	objects := make([]T, len(texts.Objects))
	for i, text := range texts.Objects {
		object, err := decode[T](text)
		if err != nil {
			return Page[T]{}, fmt.Errorf("a %s cannot be read: %w", query.Kind.Kind, err)
		}
		objects[i] = *object
		texts.Objects[i] = nil // frees the text, so that texts and objects of a page need not fit into memory together
	}
	return Page[T]{Objects: objects, Continue: texts.Continue}, nil
}
