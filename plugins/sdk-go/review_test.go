package vmhost

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

const reviewText = `{"uid":"u-1","kind":{"group":"apps","version":"v1","kind":"Deployment"},
	"resource":{"group":"apps","version":"v1","resource":"deployments"},"subResource":"scale","name":"a","namespace":"default",
	"operation":"UPDATE","userInfo":{"username":"jane","groups":["g"]},"object":{"spec":{"replicas":3,"paused":false}},
	"oldObject":null,"options":{"kind":"UpdateOptions"},"dryRun":true}`

func written(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func same(t *testing.T, have any, want string) {
	t.Helper()
	if have := written(t, have); have != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
}

func TestAllFieldsOfAReviewAreRead(t *testing.T) {
	review, err := ReviewOf("guard", json.RawMessage(reviewText))
	if err != nil {
		t.Fatal(err)
	}
	kind := Kind{Group: "apps", Version: "v1", Kind: "Deployment"}
	if review.Webhook != "guard" || review.UID != "u-1" || review.Kind != kind || review.Resource.Resource != "deployments" ||
		review.SubResource != "scale" || review.Namespace != "default" || review.Name != "a" || review.Operation != ReviewUpdate ||
		review.UserInfo.Username != "jane" || !review.DryRun || review.OldObject != nil || review.Options == nil {
		t.Errorf("%+v", review)
	}
	if old, err := OldObject[map[string]any](review); err != nil || old != nil {
		t.Error(old, err)
	}
	if _, err := ReviewOf("guard", json.RawMessage("[]")); err == nil || !strings.HasPrefix(err.Error(), "the review cannot be read") {
		t.Error(err)
	}
}

func TestVerdictsAreAdmissionResponses(t *testing.T) {
	same(t, Allow(), `{"allowed":true}`)
	same(t, Deny("no: %d", 7), `{"allowed":false,"status":{"message":"no: 7","reason":"Forbidden","code":403}}`)
	same(t, DenyAs(422, "", "odd").Warning("w").AuditAnnotation("k", "v"),
		`{"allowed":false,"status":{"message":"odd","code":422},"warnings":["w"],"auditAnnotations":{"k":"v"}}`)
	same(t, Allow().With(Add("/a", nil), Remove("/b")), `{"allowed":true,"patch":[{"op":"add","path":"/a","value":null},{"op":"remove","path":"/b"}]}`)
	first := Allow().Warning("a").AuditAnnotation("k", "v")
	_, _ = first.Warning("b"), first.AuditAnnotation("k", "w")
	same(t, first.Warning("c"), `{"allowed":true,"warnings":["a","c"],"auditAnnotations":{"k":"v"}}`)
}

func TestOnlyWhatDiffersIsInThePatch(t *testing.T) {
	for _, each := range []struct{ old, new, operations string }{
		{`{"a":1}`, `{"a":1}`, `null`},
		{`{"a":{"b":1,"c":[1,{"d":2}]},"z":0}`, `{"a":{"b":2,"c":[1,{"d":3}]},"n":null}`,
			`[{"op":"replace","path":"/a/b","value":2},{"op":"replace","path":"/a/c/1/d","value":3},{"op":"add","path":"/n","value":null},{"op":"remove","path":"/z"}]`},
		{`{"a":[]}`, `{"a":{}}`, `[{"op":"replace","path":"/a","value":{}}]`},
		{`{"a/b":1,"c~d":1,"":1}`, `{"a/b":2,"":2}`,
			`[{"op":"replace","path":"/","value":2},{"op":"replace","path":"/a~1b","value":2},{"op":"remove","path":"/c~0d"}]`},
		{`[1,4]`, `[1,2,3,4]`, `[{"op":"add","path":"/1","value":2},{"op":"add","path":"/2","value":3}]`},
		{`[1,2,3,4]`, `[1,4]`, `[{"op":"remove","path":"/2"},{"op":"remove","path":"/1"}]`},
		{`[1,1]`, `[1]`, `[{"op":"remove","path":"/1"}]`},
		{`[1,2,3]`, `[1,9,8,3]`, `[{"op":"replace","path":"/1","value":9},{"op":"add","path":"/2","value":8}]`},
		{`9007199254740993`, `9007199254740992`, `[{"op":"replace","path":"","value":9007199254740992}]`},
	} {
		old, err := tree(json.RawMessage(each.old))
		if err != nil {
			t.Fatal(err)
		}
		new, err := tree(json.RawMessage(each.new))
		if err != nil {
			t.Fatal(err)
		}
		same(t, diff(old, new), each.operations)
	}
}

// The type lacks fields of the object, and writes some that the object does not have.
func TestAMutationLeavesAloneWhatTheTypeLacks(t *testing.T) {
	type container struct {
		Image   string            `json:"image"`
		Env     map[string]string `json:"env"`
		Command []string          `json:"command,omitempty"`
	}
	type pod struct {
		Spec struct {
			Containers []container `json:"containers"`
			Security   struct {
				Profile string `json:"profile,omitempty"`
			} `json:"security,omitzero"`
		} `json:"spec"`
	}
	object := `{"spec":{"nodeName":"n","security":{"user":1},"containers":[{"name":"a","image":"x","ports":[1]},{"name":"b","image":"y"}]}}`
	review, err := ReviewOf("defaults", json.RawMessage(`{"object":`+object+`}`))
	if err != nil {
		t.Fatal(err)
	}
	mutate := func(change func(*pod)) Verdict {
		verdict, err := Mutate(review, func(object *pod) error {
			change(object)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return verdict
	}
	same(t, mutate(func(*pod) {}), `{"allowed":true}`)
	same(t, mutate(func(pod *pod) {
		pod.Spec.Containers[1].Image = "z"
		pod.Spec.Containers[1].Env = map[string]string{"k": "v"}
	}), `{"allowed":true,"patch":[{"op":"add","path":"/spec/containers/1/env","value":{"k":"v"}},{"op":"replace","path":"/spec/containers/1/image","value":"z"}]}`)
	same(t, mutate(func(pod *pod) { pod.Spec.Security.Profile = "p" }),
		`{"allowed":true,"patch":[{"op":"add","path":"/spec/security/profile","value":"p"}]}`)
	same(t, mutate(func(pod *pod) { pod.Spec.Containers = pod.Spec.Containers[1:] }),
		`{"allowed":true,"patch":[{"op":"remove","path":"/spec/containers/0"}]}`)
	same(t, mutate(func(pod *pod) { pod.Spec.Containers = append(pod.Spec.Containers, container{Image: "c"}) }),
		`{"allowed":true,"patch":[{"op":"add","path":"/spec/containers/2","value":{"env":null,"image":"c"}}]}`)
	deletion := &Review{OldObject: json.RawMessage(object)}
	if verdict, err := Mutate(deletion, func(*pod) error { return errors.New("called") }); err != nil || !verdict.Allowed {
		t.Error(verdict, err)
	}
	if _, err := Mutate(review, func(*pod) error { return errors.New("no") }); err == nil {
		t.Error("the error is lost")
	}
}

func TestABatchIsConvertedInOrder(t *testing.T) {
	text := `{"desiredAPIVersion":"g.io/v2","objects":[{"apiVersion":"g.io/v1","kind":"K","size":9007199254740993},{"apiVersion":"g.io/v2","size":1.0}]}`
	batch, err := BatchOf("vm", json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := batch.Each(func(object map[string]any, from string) error {
		object["from"] = from
		return nil
	})
	if err != nil || batch.Version() != "v2" {
		t.Error(err, batch.Version())
	}
	same(t, answerOf(objects, nil), `{"convertedObjects":[{"apiVersion":"g.io/v2","from":"v1","kind":"K","size":9007199254740993},{"apiVersion":"g.io/v2","size":1.0}]}`)
	_, err = batch.Each(func(map[string]any, string) error { return errors.New("too old") })
	same(t, answerOf(nil, err), `{"failed":"K  cannot be converted from g.io/v1 to g.io/v2: too old"}`)
	same(t, answerOf(nil, nil), `{"convertedObjects":[]}`)
}

func TestAReviewGoesToAdmitAndABatchToConvert(t *testing.T) {
	policy := Policy{
		Admit: func(review *Review) (Verdict, error) {
			if review.Name == "broken" {
				return Allow(), errors.New("broken on purpose")
			}
			return Deny("%s refuses %s", review.Webhook, review.Name), nil
		},
		Convert: func(*Batch) ([]any, error) { return nil, errors.New("bad") },
	}
	turn := func(policy Policy, kind Kind, object string) (Outcome, error) {
		return policy.Turn(&Request{Controller: "hook", Key: kind.Key("", "u-1"), Object: json.RawMessage(object)})
	}
	outcome, err := turn(policy, admission, `{"uid":"u-1","name":"a"}`)
	if err != nil {
		t.Error(err)
	}
	same(t, outcome.Effects, `[{"Name":"admission","Body":{"allowed":false,"status":{"message":"hook refuses a","reason":"Forbidden","code":403}}}]`)
	if outcome, err := turn(policy, admission, `{"name":"broken"}`); err == nil || len(outcome.Effects) > 0 {
		t.Error(outcome, err)
	}
	outcome, err = turn(policy, conversion, `{"desiredAPIVersion":"g/v2","objects":[]}`)
	if err != nil {
		t.Error(err)
	}
	same(t, outcome.Effects, `[{"Name":"conversion","Body":{"failed":"bad"}}]`)
	if _, err := turn(policy, Kind{Version: "v1", Kind: "Pod"}, `{}`); err == nil {
		t.Error("a policy without Reconcile has no turns")
	}
	if outcome, err := turn(Policy{}, admission, `{}`); err == nil || len(outcome.Effects) > 0 {
		t.Error("a policy without Admit must not allow", outcome)
	}
}

func TestAPluginMayHaveNoController(t *testing.T) {
	rule := Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Operations: []ReviewOperation{ReviewCreate}}
	same(t, Description{Name: "p", Webhooks: []Webhook{{Name: "guard", Type: Validating, Rules: []Rule{rule}}},
		Conversions: []Conversion{{Name: "vm", Group: "g.io", Kind: "Vm", Resource: "vms", Versions: []string{"v1", "v2"}}}},
		`{"apiVersion":"vmhost/v1","name":"p","webhooks":[{"name":"guard","type":"validating","rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"operations":["CREATE"]}]}],`+
			`"conversions":[{"name":"vm","group":"g.io","kind":"Vm","resource":"vms","versions":["v1","v2"]}]}`)
}
