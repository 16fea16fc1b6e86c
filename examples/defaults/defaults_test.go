package main

import (
	"encoding/json"
	"testing"

	"github.com/vmhost/vmhost/plugins/sdk-go"
	"github.com/vmhost/vmhost/plugins/sdk-go/vmhosttest"
)

// asked returns the answer about a Pod of this spec, as JSON.
func asked(t *testing.T, spec string) string {
	t.Helper()
	review, err := vmhost.ReviewOf("pods", json.RawMessage(`{"operation":"CREATE","object":{"kind":"Pod","spec":`+spec+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	host := vmhosttest.Host{Settings: map[string]string{"cpu": "50m"}}
	var text []byte
	host.Run(func() {
		verdict, err := admit(review)
		if err != nil {
			t.Fatal(err)
		}
		if text, err = json.Marshal(verdict); err != nil {
			t.Fatal(err)
		}
	})
	return string(text)
}

func TestOnlyWhatIsMissingIsAdded(t *testing.T) {
	for _, each := range []struct{ spec, want string }{
		{
			`{"nodeName":"n","containers":[{"name":"a","image":"x"},{"name":"b","resources":{"requests":{"cpu":1},"limits":{"memory":"1Gi"}}}]}`,
			`{"allowed":true,"patch":[{"op":"add","path":"/spec/containers/0/resources","value":{"requests":{"cpu":"50m","memory":"128Mi"}}},` +
				`{"op":"add","path":"/spec/securityContext","value":{"seccompProfile":{"type":"RuntimeDefault"}}}],"auditAnnotations":{"changed":"a,seccompProfile"}}`,
		},
		{
			`{"containers":[{"name":"a","resources":{"requests":{"cpu":"2"},"claims":[]}}],"initContainers":[{"name":"i"}],"securityContext":{"runAsUser":1}}`,
			`{"allowed":true,"patch":[{"op":"add","path":"/spec/containers/0/resources/requests/memory","value":"128Mi"},` +
				`{"op":"add","path":"/spec/initContainers/0/resources","value":{"requests":{"cpu":"50m","memory":"128Mi"}}},` +
				`{"op":"add","path":"/spec/securityContext/seccompProfile","value":{"type":"RuntimeDefault"}}],"auditAnnotations":{"changed":"i,a,seccompProfile"}}`,
		},
		{
			`{"containers":[{"name":"a","resources":{"requests":{"cpu":"2","memory":"1"}}}],"securityContext":{"seccompProfile":{"type":"Unconfined"}}}`,
			`{"allowed":true}`,
		},
	} {
		if have := asked(t, each.spec); have != each.want {
			t.Errorf("have %s\nwant %s", have, each.want)
		}
	}
}
