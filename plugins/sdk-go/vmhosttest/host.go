// Package vmhosttest is a stand-in for the host in a policy's native tests: objects to read,
// settings, and the logged lines (like controller-runtime's fake client).
//
//	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"default"}}`
//	host := vmhosttest.Host{Objects: []any{pod}}
//	host.Run(func() { outcome, err = reconcile(request) })
//
// It carries out no effects: a test checks the effects of the outcome.
package vmhosttest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/vmhost/vmhost/plugins/sdk-go"
	"github.com/vmhost/vmhost/plugins/sdk-go/meta"
)

// Host is the host of a policy that a test calls within [Host.Run].
type Host struct {
	// Objects are found by cached and live reads: JSON as a string, or any value that encoding/json
	// writes as an object, with apiVersion, kind and metadata.name.
	Objects []any
	// Settings are the operator's settings.
	Settings map[string]string
	// Responses answer HTTP requests, those of equal requests in order; the last one stays.
	Responses []Response
	// Requests are the HTTP requests that were sent.
	Requests []vmhost.HTTPRequest
	// Lines are what the policy has logged, as "info: text".
	Lines []string
}

// Response is an answer to an HTTP request.
type Response struct {
	// Method is GET if it is empty.
	Method string
	URL    string
	// Status is 200 if it is 0.
	Status  int
	Headers map[string]string
	Body    string
}

// Run calls policy with this host. One host at a time: not for parallel tests.
func (h *Host) Run(policy func()) {
	vmhost.WithHost(fake{h}, policy)
}

// fake keeps the methods of the interface out of Host's own.
type fake struct{ *Host }

var _ vmhost.Host = fake{}

func (f fake) Log(level slog.Level, line string) {
	name := strings.ToLower(level.String())
	if level < slog.LevelDebug {
		name = "trace"
	}
	f.Lines = append(f.Lines, name+": "+line)
}

func (f fake) Setting(name string) (string, bool) {
	value, ok := f.Settings[name]
	return value, ok
}

func (f fake) Get(key vmhost.ObjectKey) (json.RawMessage, error) {
	objects, err := f.objects()
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if object.is(key.Kind) && object.Metadata.Namespace == key.Namespace && object.Metadata.Name == key.Name {
			return object.text, nil
		}
	}
	return nil, nil
}

func (f fake) GetLive(key vmhost.ObjectKey) (json.RawMessage, error) {
	return f.Get(key)
}

func (f fake) GetMany(keys []vmhost.ObjectKey) ([]json.RawMessage, error) {
	texts := make([]json.RawMessage, len(keys))
	for i, key := range keys {
		var err error
		if texts[i], err = f.Get(key); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func (f fake) List(query vmhost.Query) (vmhost.Page[json.RawMessage], error) {
	none := vmhost.Page[json.RawMessage]{}
	if query.Index != nil {
		return none, vmhost.InvalidError{Reason: "the test host has no indexes"}
	}
	objects, err := f.objects()
	if err != nil {
		return none, err
	}
	var found []json.RawMessage
	for _, object := range objects {
		wanted, err := object.answers(query)
		if err != nil {
			return none, err
		}
		if wanted {
			text, err := object.of(query)
			if err != nil {
				return none, err
			}
			found = append(found, text)
		}
	}
	start, _ := strconv.Atoi(cmp.Or(query.Continue, "0"))
	start = min(start, len(found))
	end := min(start+int(cmp.Or(query.Limit, 500)), len(found))
	page := vmhost.Page[json.RawMessage]{Objects: found[start:end]}
	if end < len(found) {
		page.Continue = strconv.Itoa(end)
	}
	return page, nil
}

func (f fake) ListLive(query vmhost.Query) (vmhost.Page[json.RawMessage], error) {
	return f.List(query)
}

func (f fake) Send(request vmhost.HTTPRequest) (vmhost.HTTPResponse, error) {
	f.Requests = append(f.Requests, request)
	first, count := -1, 0
	for i, response := range f.Responses {
		if cmp.Or(response.Method, "GET") == request.Method && response.URL == request.URL {
			if count++; first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return vmhost.HTTPResponse{}, vmhost.HTTPError{Code: vmhost.HTTPNotSent, Detail: "the test gives no answer to " + request.Method + " " + request.URL}
	}
	response := f.Responses[first]
	if count > 1 {
		f.Responses = slices.Delete(slices.Clone(f.Responses), first, first+1)
	}
	answer := vmhost.HTTPResponse{Status: cmp.Or(response.Status, 200), Body: []byte(response.Body)}
	for name, value := range response.Headers {
		answer.Headers = append(answer.Headers, vmhost.HTTPHeader{Name: strings.ToLower(name), Value: value})
	}
	return answer, nil
}

// objects returns the objects in the order of a list: by namespace and name.
func (f fake) objects() ([]object, error) {
	objects := make([]object, len(f.Objects))
	for i, value := range f.Objects {
		var err error
		if objects[i], err = objectOf(value); err != nil {
			return nil, vmhost.InvalidError{Reason: fmt.Sprintf("object %d of the test host is none: %v", i, err)}
		}
	}
	slices.SortFunc(objects, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return objects, nil
}

type object struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   meta.ObjectMeta `json:"metadata"`
	text       json.RawMessage
}

func objectOf(value any) (object, error) {
	var object object
	if text, ok := value.(string); ok {
		object.text = json.RawMessage(text)
	} else if text, err := json.Marshal(value); err == nil {
		object.text = text
	} else {
		return object, err
	}
	return object, json.Unmarshal(object.text, &object)
}

func (o object) is(kind vmhost.Kind) bool {
	return o.APIVersion == kind.APIVersion() && o.Kind == kind.Kind
}

func (o object) answers(query vmhost.Query) (bool, error) {
	labelled, err := o.hasLabels(query.LabelSelector)
	inNamespace := query.Namespace == "" || query.Namespace == o.Metadata.Namespace
	owned := query.Owner == "" || slices.ContainsFunc(o.Metadata.OwnerReferences, func(owner meta.OwnerReference) bool { return owner.UID == query.Owner })
	return o.is(query.Kind) && inNamespace && owned && labelled, err
}

// hasLabels supports a=b,c=d,e, which is enough for tests.
func (o object) hasLabels(selector string) (bool, error) {
	if selector == "" {
		return true, nil
	}
	for term := range strings.SplitSeq(selector, ",") {
		if strings.ContainsAny(term, "!( ") {
			return false, vmhost.InvalidError{Reason: fmt.Sprintf("the test host knows a=b and a only, not %q", term)}
		}
		name, value, isValue := strings.Cut(term, "=")
		have, ok := o.Metadata.Labels[name]
		if !ok || isValue && have != value {
			return false, nil
		}
	}
	return true, nil
}

func (o object) of(query vmhost.Query) (json.RawMessage, error) {
	if !query.MetadataOnly {
		return o.text, nil
	}
	var whole struct {
		APIVersion json.RawMessage `json:"apiVersion"`
		Kind       json.RawMessage `json:"kind"`
		Metadata   json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(o.text, &whole); err != nil {
		return nil, err
	}
	return json.Marshal(whole)
}
