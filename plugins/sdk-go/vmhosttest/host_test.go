package vmhosttest

import (
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/vmhost/vmhost/plugins/sdk-go"
	"github.com/vmhost/vmhost/plugins/sdk-go/meta"
)

var podKind = vmhost.Kind{Version: "v1", Kind: "Pod"}

type pod struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   meta.ObjectMeta   `json:"metadata"`
	Spec       map[string]string `json:"spec"`
}

func newPod(namespace, name, label, owner string) pod {
	metadata := meta.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": label}, OwnerReferences: []meta.OwnerReference{{UID: owner}}}
	return pod{"v1", "Pod", metadata, map[string]string{"nodeName": "n"}}
}

// run calls test with three Pods and one setting, and returns what was logged.
func run(test func()) []string {
	host := Host{
		Objects: []any{
			newPod("b", "one", "web", "u-1"),
			newPod("a", "two", "web", "u-2"),
			`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a","name":"one","labels":{"app":"db"},"ownerReferences":[{"uid":"u-1"}]}}`,
		},
		Settings: map[string]string{"colour": "red", "empty": ""},
	}
	host.Run(test)
	return host.Lines
}

func TestObjectsAreFoundByTheirKeys(t *testing.T) {
	run(func() {
		found, err := vmhost.Get[pod](podKind.Key("b", "one"))
		if err != nil || found.Metadata.Labels["app"] != "web" {
			t.Errorf("b/one is %v, %v", found, err)
		}
		for _, key := range []vmhost.ObjectKey{podKind.Key("b", "two"), podKind.Key("", "one"), {Kind: vmhost.Kind{Version: "v1", Kind: "Node"}, Name: "one"}} {
			if found, err := vmhost.GetLive[pod](key); found != nil || err != nil {
				t.Errorf("%v is %v, %v", key, found, err)
			}
		}
		many, err := vmhost.GetMany[pod]([]vmhost.ObjectKey{podKind.Key("a", "two"), podKind.Key("a", "none"), podKind.Key("b", "one")})
		if err != nil || many[0].Metadata.Name != "two" || many[1] != nil || many[2].Metadata.Namespace != "b" {
			t.Errorf("many are %v, %v", many, err)
		}
		raw, err := vmhost.Get[json.RawMessage](podKind.Key("a", "one"))
		if err != nil || !strings.HasPrefix(string(*raw), `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a"`) {
			t.Errorf("the text is %s, %v", *raw, err)
		}
	})
}

func TestListsHoldAllPagesInOrder(t *testing.T) {
	run(func() {
		for _, test := range []struct {
			query vmhost.Query
			want  []string
		}{
			{vmhost.Query{Limit: 1}, []string{"a/one", "a/two", "b/one"}},
			{vmhost.Query{Namespace: "a", LabelSelector: "app=web"}, []string{"a/two"}},
			{vmhost.Query{LabelSelector: "app"}, []string{"a/one", "a/two", "b/one"}},
			{vmhost.Query{Owner: "u-1"}, []string{"a/one", "b/one"}},
		} {
			test.query.Kind = podKind
			found, err := vmhost.List[pod](test.query)
			var names []string
			for _, pod := range found {
				names = append(names, pod.Metadata.Namespace+"/"+pod.Metadata.Name)
			}
			if err != nil || !reflect.DeepEqual(names, test.want) {
				t.Errorf("%+v is %v, %v", test.query, names, err)
			}
		}
		if count, err := vmhost.Count(vmhost.Query{Kind: podKind, Limit: 2}); count != 3 || err != nil {
			t.Errorf("the count is %d, %v", count, err)
		}
		page, err := vmhost.ListPageLive[pod](vmhost.Query{Kind: podKind, Limit: 2, MetadataOnly: true})
		if err != nil || len(page.Objects) != 2 || page.Continue == "" || page.Objects[1].Spec != nil || page.Objects[1].Metadata.Name != "two" {
			t.Errorf("the page is %+v, %v", page, err)
		}
	})
}

func TestSettingsAreGivenAndLinesAreKept(t *testing.T) {
	lines := run(func() {
		slog.Info("hello", "n", 7)
		slog.With("a", "b c").WithGroup("g").Warn("oh", "level", "high", "msg", "x")
		slog.Debug("one\ntwo ☃")
		for _, test := range []struct {
			name, value string
			given       bool
		}{{"colour", "red", true}, {"empty", "", true}, {"missing", "", false}} {
			if value, given := vmhost.Setting(test.name); value != test.value || given != test.given {
				t.Errorf("%s is %q, %v", test.name, value, given)
			}
		}
	})
	want := []string{"info: hello n=7", `warn: oh a="b c" g.level=high g.msg=x`, "debug: one\ntwo ☃"}
	if !reflect.DeepEqual(lines, want) {
		t.Errorf("lines are %q", lines)
	}
	if _, given := vmhost.Setting("colour"); given {
		t.Error("outside of the run there is no host")
	}
}

func TestAReadThatFailsNamesTheObjectAndTheReason(t *testing.T) {
	_, err := vmhost.Get[pod](podKind.Key("a", "one"))
	if !errors.As(err, new(vmhost.UnavailableError)) || !strings.HasPrefix(err.Error(), "Pod a/one cannot be read: the live read failed: there is no host") {
		t.Errorf("%v", err)
	}
	run(func() {
		if _, err := vmhost.Get[int](podKind.Key("a", "one")); err == nil || !strings.HasPrefix(err.Error(), "Pod a/one cannot be read: json: ") {
			t.Errorf("%v", err)
		}
		_, err := vmhost.List[pod](vmhost.Query{Kind: podKind, Index: &vmhost.IndexMatch{Name: "node", Value: "n"}})
		if !errors.As(err, new(vmhost.InvalidError)) || err.Error() != "the list of Pod cannot be read: the test host has no indexes" {
			t.Errorf("%v", err)
		}
		if _, err := vmhost.List[pod](vmhost.Query{Kind: podKind, LabelSelector: "!app"}); !errors.As(err, new(vmhost.InvalidError)) {
			t.Errorf("%v", err)
		}
	})
}
