package vmhost

// The JSON patch (RFC 6902) between two documents, which are what encoding/json reads.

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// diff returns the operations that make old into new, in the order of the members' names.
func diff(old, new any) []Operation {
	var operations []Operation
	compare("", old, new, &operations)
	return operations
}

func compare(path string, old, new any, to *[]Operation) {
	if reflect.DeepEqual(old, new) {
		return
	}
	oldMembers, isObject := old.(map[string]any)
	if newMembers, ok := new.(map[string]any); ok && isObject {
		compareMembers(path, oldMembers, newMembers, to)
		return
	}
	oldElements, isList := old.([]any)
	if newElements, ok := new.([]any); ok && isList {
		compareElements(path, oldElements, newElements, to)
		return
	}
	*to = append(*to, Replace(path, new))
}

func compareMembers(path string, old, new map[string]any, to *[]Operation) {
	for _, name := range names(old, new) {
		below := path + "/" + escapes.Replace(name)
		was, before := old[name]
		is, after := new[name]
		switch {
		case before && after:
			compare(below, was, is, to)
		case before:
			*to = append(*to, Remove(below))
		default:
			*to = append(*to, Add(below, is))
		}
	}
}

// compareElements leaves equal elements at both ends; those between are compared one by one, and
// what is left over is added or removed.
func compareElements(path string, old, new []any, to *[]Operation) {
	start, end := common(old, new)
	below := func(at int) string { return path + "/" + strconv.Itoa(at) }
	both := min(len(old), len(new)) - end
	for at := start; at < both; at++ {
		compare(below(at), old[at], new[at], to)
	}
	for at := both; at < len(new)-end; at++ {
		*to = append(*to, Add(below(at), new[at]))
	}
	// From the back, so that no removal moves what a later one names.
	for at := len(old) - end - 1; at >= both; at-- {
		*to = append(*to, Remove(below(at)))
	}
}

// common returns how many elements are equal at the start, and how many of the others at the end.
func common(old, new []any) (start, end int) {
	for start < min(len(old), len(new)) && reflect.DeepEqual(old[start], new[start]) {
		start++
	}
	for end < min(len(old), len(new))-start && reflect.DeepEqual(old[len(old)-1-end], new[len(new)-1-end]) {
		end++
	}
	return start, end
}

func names(old, new map[string]any) []string {
	var all []string
	for name := range old {
		all = append(all, name)
	}
	for name := range new {
		if _, ok := old[name]; !ok {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// carry returns whole with the changes from before to after, which may be views of whole that lack
// some of its members. It changes none of its arguments.
func carry(whole, before, after any) any {
	if reflect.DeepEqual(before, after) {
		return whole
	}
	members, _ := whole.(map[string]any)
	oldMembers, wasObject := before.(map[string]any)
	newMembers, isObject := after.(map[string]any)
	// A view may have left out an object of which it shows nothing.
	if isObject && (wasObject || before == nil && members != nil) {
		return carryMembers(members, oldMembers, newMembers)
	}
	wholeElements, isList := whole.([]any)
	oldElements, wasList := before.([]any)
	newElements, ok := after.([]any)
	if isList && wasList && ok && len(wholeElements) == len(oldElements) {
		return carryElements(wholeElements, oldElements, newElements)
	}
	return after
}

func carryMembers(whole, before, after map[string]any) any {
	made := map[string]any{}
	for name, value := range whole {
		made[name] = value
	}
	for _, name := range names(before, after) {
		was, had := before[name]
		is, has := after[name]
		switch {
		case had && has && reflect.DeepEqual(was, is):
			// Left alone: it may not even be there, and only the type writes it.
		case has:
			made[name] = carry(whole[name], was, is)
		default:
			delete(made, name)
		}
	}
	return made
}

func carryElements(whole, before, after []any) any {
	start, end := common(before, after)
	both := min(len(before), len(after)) - end
	made := slices.Clone(whole[:start])
	for at := start; at < both; at++ {
		made = append(made, carry(whole[at], before[at], after[at]))
	}
	if both < len(after)-end {
		made = append(made, after[both:len(after)-end]...)
	}
	return append(made, whole[len(whole)-end:]...)
}
