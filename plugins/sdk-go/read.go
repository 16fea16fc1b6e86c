package vmhost

// Typed reads of other objects, from the host's cache and live. All kinds that are read must be named in the description.

import (
	"encoding/json"
	"fmt"
)

// Query says which objects to list. All conditions hold together.
type Query struct {
	Kind Kind
	// Namespace is empty for all that the host watches.
	Namespace string
	// LabelSelector is as kubectl writes it: app=web,tier in (a,b),!legacy. Empty: all.
	LabelSelector string
	// Index asks for a value in an index of the description. Not for live reads.
	Index *IndexMatch
	// Owner asks for an owner reference with this uid. Not for live reads.
	Owner string
	// MetadataOnly asks for apiVersion, kind and metadata of each object only.
	MetadataOnly bool
	// Limit is how many objects one page holds at most; 0: 500.
	Limit uint32
	// Continue is that of the page before. Only [ListPage] and [ListPageLive] need it.
	Continue string
}

// IndexMatch is a value in an index: a string, or a number or boolean as JSON writes it.
type IndexMatch struct {
	Name, Value string
}

// Page is one answer to a [Query].
type Page[T any] struct {
	// Objects are ordered by namespace and name.
	Objects []T
	// Continue is for the next page; empty: this was the last.
	Continue string
}

// Get is one object of the cache; nil if it does not exist. T names only the fields that the policy needs; [json.RawMessage] is the text as it is. An error is,
// or wraps, one of [NotWatchedError], [TooLargeError], [InvalidError] and [UnavailableError], or tells why the text is no T.
func Get[T any](key ObjectKey) (*T, error) {
	text, err := host.Get(key)
	return read[T](key, text, err)
}

// GetLive is as [Get], from the API server itself.
func GetLive[T any](key ObjectKey) (*T, error) {
	text, err := host.GetLive(key)
	return read[T](key, text, err)
}

// GetMany is many objects of the cache in one crossing, in the order of keys; nil for one that does not exist.
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

// List is all objects of the cache that answer the query, page by page.
func List[T any](query Query) ([]T, error) {
	return all[T](query, host.List)
}

// ListLive is as [List], from the API server itself.
func ListLive[T any](query Query) ([]T, error) {
	return all[T](query, host.ListLive)
}

// ListPage is one page of objects of the cache.
func ListPage[T any](query Query) (Page[T], error) {
	return onePage[T](query, host.List)
}

// ListPageLive is as [ListPage], from the API server itself.
func ListPageLive[T any](query Query) (Page[T], error) {
	return onePage[T](query, host.ListLive)
}

// Count is how many objects of the cache answer the query. Only metadata crosses into the policy.
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
		texts.Objects[i] = nil // so that text and object of a whole page need not fit into memory at once
	}
	return Page[T]{Objects: objects, Continue: texts.Continue}, nil
}
