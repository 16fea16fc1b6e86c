// Prints each stable versioned type of Kubernetes' built-in kinds as Go encodes it without a value,
// except for its metadata: what the real server compares a new object with when it records which
// fields a client has set. tests/tables.sh writes the output to the embedded server's table,
// host/apiserver/src/builtin/empty.json.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	definitions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	services "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

func main() {
	utilruntime.Must(definitions.AddToScheme(scheme.Scheme))
	utilruntime.Must(services.AddToScheme(scheme.Scheme))
	found := map[string]any{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		object, err := scheme.Scheme.New(kind)
		utilruntime.Must(err)
		if kind.Version == runtime.APIVersionInternal || strings.HasSuffix(kind.Kind, "List") {
			continue
		}
		if strings.Contains(kind.Version, "alpha") || strings.Contains(kind.Version, "beta") {
			continue
		}
		text, err := json.Marshal(object)
		utilruntime.Must(err)
		fields := map[string]any{}
		utilruntime.Must(json.Unmarshal(text, &fields))
		if _, isObject := fields["metadata"]; !isObject {
			continue
		}
		delete(fields, "metadata")
		if len(fields) > 0 {
			found[fmt.Sprintf("%s %s", kind.GroupVersion(), kind.Kind)] = fields
		}
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	utilruntime.Must(out.Encode(found))
}
