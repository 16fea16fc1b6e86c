package main

// The cases that read the cluster.

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

type raw = json.RawMessage

// text returns a text as a JSON string, or null for nil.
func text(object *raw) any {
	if object == nil {
		return nil
	}
	return string(*object)
}

func texts(objects []raw) []string {
	list := make([]string, len(objects))
	for i := range objects {
		list[i] = string(objects[i])
	}
	return list
}

func orNull(token string) any {
	if token == "" {
		return nil
	}
	return token
}

func get() (any, error) {
	a, err := vmhost.Get[raw](configMap.Key("default", "a"))
	if err != nil {
		return nil, err
	}
	b, err := vmhost.Get[raw](configMap.Key("default", "b"))
	return map[string]any{"a": text(a), "b": text(b)}, err
}

func getMany() (any, error) {
	keys := make([]vmhost.ObjectKey, 1000)
	for i := range keys {
		keys[i] = configMap.Key("default", fmt.Sprintf("k%d", i))
	}
	objects, err := vmhost.GetMany[raw](keys)
	if err != nil {
		return nil, err
	}
	found := 0
	for _, object := range objects {
		if object != nil {
			found++
		}
	}
	return map[string]any{"found": found, "first": text(objects[0]), "last": text(objects[999])}, nil
}

func list() (any, error) {
	page, err := vmhost.ListPage[raw](vmhost.Query{
		Kind:          configMap,
		Namespace:     "default",
		LabelSelector: "app=web,!legacy",
		Index:         &vmhost.IndexMatch{Name: "by-node", Value: "n1"},
		Owner:         "u-1",
		MetadataOnly:  true,
		Limit:         2,
		Continue:      "c-1",
	})
	return map[string]any{"objects": texts(page.Objects), "continue": orNull(page.Continue)}, err
}

func live() (any, error) {
	a, err := vmhost.GetLive[raw](pod.Key("default", "a"))
	if err != nil {
		return nil, err
	}
	page, err := vmhost.ListPageLive[raw](vmhost.Query{Kind: pod})
	return map[string]any{"a": text(a), "objects": texts(page.Objects), "continue": orNull(page.Continue)}, err
}

func readErrors() (any, error) {
	answer := map[string]any{}
	for _, name := range []string{"not-watched", "too-large", "invalid", "unavailable"} {
		_, err := vmhost.Get[raw](configMap.Key("default", name))
		var notWatched vmhost.NotWatchedError
		var tooLarge vmhost.TooLargeError
		var invalid vmhost.InvalidError
		var unavailable vmhost.UnavailableError
		switch {
		case errors.As(err, &notWatched):
			answer["not-watched"] = notWatched.Kind
		case errors.As(err, &tooLarge):
			answer["too-large"] = tooLarge.Limit
		case errors.As(err, &invalid):
			answer["invalid"] = invalid.Reason
		case errors.As(err, &unavailable):
			answer["unavailable"] = unavailable.Reason
		default:
			return nil, fmt.Errorf("%s was not refused: %v", name, err)
		}
	}
	return answer, nil
}

func settings() any {
	answer := map[string]any{}
	for _, name := range []string{"given", "empty", "missing"} {
		if value, given := vmhost.Setting(name); given {
			answer[name] = value
		} else {
			answer[name] = nil
		}
	}
	return answer
}
