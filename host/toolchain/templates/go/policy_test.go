package main

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

func TestGreetings(t *testing.T) {
	key := kind.Key("default", "a")
	greeted := func(message string) vmhost.Outcome {
		status := map[string]any{"status": map[string]any{"message": message}}
		return vmhost.AwaitChange(
			vmhost.MergePatch{Key: key, Subresource: "status", Body: status},
			vmhost.Event{Type: vmhost.Normal, Reason: "Greeted", Note: message},
		)
	}
	for _, test := range []struct {
		name, object string
		want         vmhost.Outcome
	}{
		{"a name is greeted", `{"spec":{"who":"you"}}`, greeted("hello, you")},
		{"no name greets the world", `{"spec":{}}`, greeted("hello, world")},
		{"a changed name is greeted again", `{"spec":{"who":"you"},"status":{"message":"hello, me"}}`, greeted("hello, you")},
		{"a greeted name is left alone", `{"spec":{"who":"you"},"status":{"message":"hello, you"}}`, vmhost.AwaitChange()},
	} {
		t.Run(test.name, func(t *testing.T) {
			have, err := reconcile(&vmhost.Request{Controller: "__plural__", Key: key, Object: json.RawMessage(test.object)})
			if err != nil || !reflect.DeepEqual(have, test.want) {
				t.Errorf("have %+v, %v\nwant %+v", have, err, test.want)
			}
		})
	}
}

func TestAnObjectThatIsGoneIsLeftAlone(t *testing.T) {
	have, err := reconcile(&vmhost.Request{Key: kind.Key("default", "a")})
	if err != nil || !reflect.DeepEqual(have, vmhost.AwaitChange()) {
		t.Errorf("have %+v, %v", have, err)
	}
}

func TestAnObjectThatCannotBeReadIsAnError(t *testing.T) {
	request := &vmhost.Request{Key: kind.Key("default", "a"), Object: json.RawMessage(`{"spec":{"who":1}}`)}
	if _, err := reconcile(request); err == nil {
		t.Error("a number was greeted")
	}
}
