package vmhost

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	wire "github.com/vmhost/vmhost/plugins/sdk-go/internal/bindings/imports/vmhost_plugin_types"
	wit "github.com/vmhost/vmhost/plugins/sdk-go/internal/wit/types"
)

var (
	configMap = Kind{Version: "v1", Kind: "ConfigMap"}
	a         = configMap.Key("default", "a")
	wireKey   = wire.ObjectKey{Kind: wire.Gvk{Version: "v1", Kind: "ConfigMap"}, Namespace: wit.Some("default"), Name: "a"}
	none      = wit.None[string]()
)

func inCluster(body string) wire.Effect {
	return wire.MakeEffectOther(wire.Other{Name: "in-cluster", Body: body})
}

func TestEffectsBecomeTheRecordsOfTheContract(t *testing.T) {
	object := map[string]any{"kind": "X"}
	for _, test := range []struct {
		effect Effect
		want   wire.Effect
	}{
		{Apply{Object: object}, wire.MakeEffectApply(wire.Apply{Object: `{"kind":"X"}`, Subresource: none, Force: true, CreateIfAbsent: true, IfVersion: none})},
		{
			Apply{Object: object, Subresource: "status", Polite: true, Existing: true, IfVersion: "7"},
			wire.MakeEffectApply(wire.Apply{Object: `{"kind":"X"}`, Subresource: wit.Some("status"), IfVersion: wit.Some("7")}),
		},
		{
			MergePatch{Key: a, Body: map[string]any{"k": nil}, IfVersion: "8"},
			wire.MakeEffectPatch(wire.Patch{Key: wireKey, Subresource: none, Type: wire.PatchType_Merge, Body: `{"k":null}`, IfVersion: wit.Some("8")}),
		},
		{
			JSONPatch{Key: a, Operations: []Operation{Test("/a", 1), Add("/b/-", "x"), Replace("/c~1d", nil), Remove("/e")}, Subresource: "status"},
			wire.MakeEffectPatch(wire.Patch{Key: wireKey, Subresource: wit.Some("status"), Type: wire.PatchType_Json, IfVersion: none,
				Body: `[{"op":"test","path":"/a","value":1},{"op":"add","path":"/b/-","value":"x"},` +
					`{"op":"replace","path":"/c~1d","value":null},{"op":"remove","path":"/e"}]`}),
		},
		{JSONPatch{Key: a}, wire.MakeEffectPatch(wire.Patch{Key: wireKey, Subresource: none, Type: wire.PatchType_Json, Body: `[]`, IfVersion: none})},
		{Create{Object: object}, wire.MakeEffectCreate(wire.Create{Object: `{"kind":"X"}`})},
		{Delete{Key: a}, wire.MakeEffectDelete(wire.Delete{Key: wireKey, Uid: none, IfVersion: none, Propagation: wit.None[wire.Propagation]()})},
		{
			Delete{Key: a, UID: "u-1", IfVersion: "9", Propagation: Foreground},
			wire.MakeEffectDelete(wire.Delete{Key: wireKey, Uid: wit.Some("u-1"), IfVersion: wit.Some("9"), Propagation: wit.Some(wire.Propagation_Foreground)}),
		},
		{NormalEvent("Fine", "%d", 1), wire.MakeEffectEvent(wire.Event{Type: wire.EventType_Normal, Reason: "Fine", Note: "1", Related: wit.None[wire.ObjectKey]()})},
		{
			Event{Type: Warning, Reason: "Broken", Action: "Mending", Note: "\xff☃", Related: &a},
			wire.MakeEffectEvent(wire.Event{Type: wire.EventType_Warning, Reason: "Broken", Action: "Mending", Note: "\uFFFD☃", Related: wit.Some(wireKey)}),
		},
		{
			InCluster{Cluster: "east", Effect: Apply{Object: object, Subresource: "status", Existing: true}},
			inCluster(`{"cluster":"east","effect":{"apply":{"object":{"kind":"X"},"subresource":"status","force":true,"createIfAbsent":false}}}`),
		},
		{
			InCluster{Effect: JSONPatch{Key: a, Operations: []Operation{Remove("/e")}, IfVersion: "8"}},
			inCluster(`{"cluster":null,"effect":{"patch":{"key":{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"a"},` +
				`"type":"json","body":[{"op":"remove","path":"/e"}],"ifVersion":"8"}}}`),
		},
		{
			InCluster{Cluster: "east", Effect: MergePatch{Key: Kind{"apps", "v1", "Deployment"}.Key("", "x"), Body: object}},
			inCluster(`{"cluster":"east","effect":{"patch":{"key":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"},"type":"merge","body":{"kind":"X"}}}}`),
		},
		{InCluster{Effect: Create{Object: object}}, inCluster(`{"cluster":null,"effect":{"create":{"object":{"kind":"X"}}}}`)},
		{
			InCluster{Cluster: "east", Effect: Delete{Key: a, UID: "u-1", Propagation: Orphan}},
			inCluster(`{"cluster":"east","effect":{"delete":{"key":{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"a"},` +
				`"uid":"u-1","propagation":"orphan"}}}`),
		},
		{Other{Name: "future", Body: 1}, wire.MakeEffectOther(wire.Other{Name: "future", Body: "1"})},
	} {
		have, err := effectToWire(test.effect)
		if err != nil || !reflect.DeepEqual(have, test.want) {
			t.Errorf("%#v is\n%#v, %v", test.effect, have, err)
		}
	}
}

func TestAnEffectThatCannotBeIsAnErrorThatNamesIt(t *testing.T) {
	for _, test := range []struct {
		effect Effect
		want   string
	}{
		{MergePatch{Key: a}, "effect 1: the patch of ConfigMap default/a is nil"},
		{Create{Object: func() {}}, "effect 1: the object to create cannot be written as JSON: json: unsupported type: func()"},
		{Apply{Object: math.NaN()}, "effect 1: the object of an apply cannot be written as JSON: json: unsupported value: NaN"},
		{Delete{Key: a, Propagation: 9}, "effect 1: there is no propagation 9"},
		{Event{Type: 9}, "effect 1: there is no event type 9"},
		{InCluster{Effect: Event{}}, "effect 1: vmhost.Event cannot be in a named cluster: only an apply, patch, create or delete can"},
		{InCluster{Effect: Create{}}, "effect 1: the object to create is nil"},
		{InCluster{}, "effect 1: <nil> is no effect; effects are values, not pointers"},
		{&Event{}, "effect 1: *vmhost.Event is no effect; effects are values, not pointers"},
		{nil, "effect 1: <nil> is no effect; effects are values, not pointers"},
	} {
		_, err := toWire(AwaitChange(Delete{Key: a}, test.effect))
		if err == nil || err.Error() != test.want {
			t.Errorf("%#v is %v", test.effect, err)
		}
	}
}

func TestWhatComesNext(t *testing.T) {
	for _, test := range []struct {
		outcome Outcome
		want    wire.Next
	}{
		{Outcome{}, wire.MakeNextAwaitChange()},
		{RequeueAfter(math.MaxUint32 * time.Millisecond), wire.MakeNextRequeueAfterMs(math.MaxUint32)},
		{RequeueAfter(math.MaxInt64), wire.MakeNextRequeueAfterMs(math.MaxUint32)},
		{RequeueAfter(-time.Second), wire.MakeNextRequeueAfterMs(0)},
		{RequeueAfter(time.Millisecond + 1), wire.MakeNextRequeueAfterMs(2)},
		{Requeue(), wire.MakeNextRequeue()},
		{Retry("later"), wire.MakeNextRetry("later")},
		{Fail("never"), wire.MakeNextFail("never")},
		{Finalized(), wire.MakeNextFinalized()},
	} {
		have, err := toWire(test.outcome)
		if err != nil || !reflect.DeepEqual(have.Next, test.want) {
			t.Errorf("%v is %v, %v", test.outcome, have.Next, err)
		}
	}
	if _, err := toWire(Outcome{Next: Next{Step: 9}}); err == nil || !strings.Contains(err.Error(), "there is no step 9") {
		t.Errorf("%v", err)
	}
}
