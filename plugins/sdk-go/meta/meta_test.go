package meta

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

var deployment = vmhost.Kind{Group: "apps", Version: "v1", Kind: "Deployment"}

func written(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReferences(t *testing.T) {
	owner := ObjectMeta{Name: "web", UID: "u-1"}
	want := `{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"u-1","controller":true,"blockOwnerDeletion":true}`
	if have := written(t, ControllerReference(owner, deployment)); have != want {
		t.Errorf("a controller reference is %s", have)
	}
	want = `{"apiVersion":"v1","kind":"ConfigMap","name":"web","uid":"u-1"}`
	if have := written(t, Reference(owner, vmhost.Kind{Version: "v1", Kind: "ConfigMap"})); have != want {
		t.Errorf("a reference is %s", have)
	}
	child := ObjectMeta{OwnerReferences: []OwnerReference{Reference(owner, deployment)}}
	if IsControlledBy(child, owner) {
		t.Error("an owner that is no controller controls")
	}
	child.OwnerReferences = append(child.OwnerReferences, ControllerReference(owner, deployment))
	if !IsControlledBy(child, owner) || IsControlledBy(child, ObjectMeta{Name: "web", UID: "u-3"}) {
		t.Error("the controller is the one of the same uid")
	}
}

func TestMetadataOfAnAPIServerIsRead(t *testing.T) {
	text := `{"name":"web","uid":"u-1","generation":3,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"web"},
		"deletionTimestamp":"2026-01-02T00:00:00Z","finalizers":["a/b"]}`
	var object ObjectMeta
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	if object.Generation != 3 || object.Labels["app"] != "web" || object.DeletionTimestamp.Day() != 2 {
		t.Errorf("%+v", object)
	}
	if !ContainsFinalizer(object, "a/b") || ContainsFinalizer(object, "a/c") {
		t.Error("the finalizers are a/b")
	}
}

func at(second int) time.Time { return time.Unix(int64(second), 5) }

func TestTheTransitionTimeMovesOnlyWithTheStatus(t *testing.T) {
	var all []Condition
	for i, step := range []struct {
		condition Condition
		changed   bool
		since     int
	}{
		{Condition{Type: "Ready", Status: ConditionFalse, Reason: "Starting", LastTransitionTime: at(1)}, true, 1},
		{Condition{Type: "Ready", Status: ConditionFalse, Reason: "Starting", LastTransitionTime: at(2)}, false, 1},
		{Condition{Type: "Ready", Status: ConditionFalse, Reason: "Pulling", LastTransitionTime: at(3)}, true, 1},
		{Condition{Type: "Ready", Status: ConditionTrue, Reason: "Up", LastTransitionTime: at(4)}, true, 4},
		{Condition{Type: "Ready", Status: ConditionTrue, Reason: "Up", ObservedGeneration: 2}, true, 4},
	} {
		if changed := SetStatusCondition(&all, step.condition); changed != step.changed {
			t.Errorf("step %d: changed is %v", i, changed)
		}
		if since := all[0].LastTransitionTime; len(all) != 1 || !since.Equal(at(step.since).Truncate(time.Second)) {
			t.Errorf("step %d: %d conditions, since %v", i, len(all), since)
		}
	}
}

func TestConditionsAreFoundAndRemovedByType(t *testing.T) {
	all := []Condition{{Type: "Ready", Status: ConditionTrue}, {Type: "Degraded", Status: ConditionFalse}}
	if !IsStatusConditionTrue(all, "Ready") || IsStatusConditionTrue(all, "Degraded") {
		t.Error("Ready is true, Degraded is not")
	}
	if !IsStatusConditionFalse(all, "Degraded") || IsStatusConditionFalse(all, "Absent") {
		t.Error("Degraded is false, Absent is not")
	}
	if !RemoveStatusCondition(&all, "Ready") || RemoveStatusCondition(&all, "Ready") || FindStatusCondition(all, "Ready") != nil || len(all) != 1 {
		t.Errorf("Ready is taken out once: %v", all)
	}
}

func TestAConditionHasTheFieldsOfMetav1(t *testing.T) {
	var all []Condition
	lost := Condition{Type: "Ready", Status: ConditionUnknown, Reason: "Lost", Message: "no word", ObservedGeneration: 4, LastTransitionTime: at(0)}
	SetStatusCondition(&all, lost)
	want := `[{"type":"Ready","status":"Unknown","observedGeneration":4,"lastTransitionTime":"1970-01-01T00:00:00Z","reason":"Lost","message":"no word"}]`
	if have := written(t, all); have != want {
		t.Errorf("%s", have)
	}
}
