// A mutating admission webhook: new Pods get what a cluster's operator wants them to have, where
// they say nothing themselves. Requests of cpu and memory for each container, and the runtime's
// seccomp profile.
package main

import (
	"strings"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

// optOut is a label: Pods with the value off stay as they are.
const optOut = "defaults.vmhost.dev/pods"

// pod has only what the policy looks at. What else a Pod has stays as it is.
type pod struct {
	Spec struct {
		Containers      []container     `json:"containers"`
		InitContainers  []container     `json:"initContainers,omitempty"`
		SecurityContext securityContext `json:"securityContext,omitzero"`
	} `json:"spec"`
}

type container struct {
	Name      string    `json:"name"`
	Resources resources `json:"resources,omitzero"`
}

type resources struct {
	Requests map[string]any `json:"requests,omitempty"`
	Limits   map[string]any `json:"limits,omitempty"`
}

type securityContext struct {
	SeccompProfile *seccompProfile `json:"seccompProfile,omitempty"`
}

type seccompProfile struct {
	Type string `json:"type"`
}

func describe() vmhost.Description {
	return vmhost.Description{
		Name:    "defaults",
		Version: "0.1.0",
		Webhooks: []vmhost.Webhook{{
			Name: "pods",
			Type: vmhost.Mutating,
			Rules: []vmhost.Rule{{
				APIGroups:   []string{""},
				APIVersions: []string{"v1"},
				Resources:   []string{"pods"},
				Operations:  []vmhost.ReviewOperation{vmhost.ReviewCreate},
				Scope:       "Namespaced",
			}},
			ObjectSelector: &vmhost.LabelSelector{MatchExpressions: []vmhost.LabelRequirement{
				{Key: optOut, Operator: "NotIn", Values: []string{"off"}},
			}},
			// A Pod without defaults is better than no Pod.
			FailurePolicy: vmhost.IgnoreOnFailure,
			// Containers that a later webhook adds get theirs too.
			ReinvocationPolicy: "IfNeeded",
		}},
	}
}

func admit(review *vmhost.Review) (vmhost.Verdict, error) {
	var changed []string
	requests := map[string]string{"cpu": setting("cpu", "100m"), "memory": setting("memory", "128Mi")}
	verdict, err := vmhost.Mutate(review, func(pod *pod) error {
		for _, list := range [][]container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if list[i].request(requests) {
					changed = append(changed, list[i].Name)
				}
			}
		}
		if pod.Spec.SecurityContext.SeccompProfile == nil {
			pod.Spec.SecurityContext.SeccompProfile = &seccompProfile{Type: "RuntimeDefault"}
			changed = append(changed, "seccompProfile")
		}
		return nil
	})
	if err == nil && len(changed) > 0 {
		verdict = verdict.AuditAnnotation("changed", strings.Join(changed, ","))
	}
	return verdict, err
}

// request adds what the container does not request, and returns whether there was anything. A limit
// without a request is a request of its own: the API server takes it for one.
func (c *container) request(requests map[string]string) bool {
	added := false
	for name, quantity := range requests {
		if c.Resources.Requests[name] != nil || c.Resources.Limits[name] != nil {
			continue
		}
		if c.Resources.Requests == nil {
			c.Resources.Requests = map[string]any{}
		}
		c.Resources.Requests[name] = quantity
		added = true
	}
	return added
}

func setting(name, otherwise string) string {
	if value, given := vmhost.Setting(name); given {
		return value
	}
	return otherwise
}

func init() {
	vmhost.Export(vmhost.Policy{Describe: describe, Admit: admit})
}

func main() {}
