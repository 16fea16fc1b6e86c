package main

// The description of the conformance guest: description.json, with the SDK's types.

import (
	"time"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

var (
	caseKind  = vmhost.Kind{Group: "conformance.vmhost.dev", Version: "v1", Kind: "Case"}
	configMap = core("ConfigMap")
	namespace = core("Namespace")
	pod       = core("Pod")
)

func core(kind string) vmhost.Kind {
	return vmhost.Kind{Version: "v1", Kind: kind}
}

func apps(kind string) vmhost.Kind {
	return vmhost.Kind{Group: "apps", Version: "v1", Kind: kind}
}

func describe() vmhost.Description {
	cases := vmhost.Controller{
		Name: "cases",
		Primary: &vmhost.Watch{
			Kind:          caseKind,
			LabelSelector: "app=case",
			FieldSelector: "metadata.name!=ignored",
			WantedFields:  []string{"spec", "status.phase"},
			Indexes:       map[string]string{"by-node": "spec.nodeName"},
			Predicates: &vmhost.Predicates{
				Changed:       []vmhost.Aspect{vmhost.GenerationChanged, vmhost.LabelsChanged},
				LabelSelector: "tier in (a,b)",
				FieldSelector: "spec.paused!=true",
				CEL:           "object.spec.case != ''",
			},
		},
		Owns: []vmhost.Watch{{Kind: configMap}},
		Watches: []vmhost.Watch{
			{Kind: core("Secret"), MetadataOnly: true, Map: vmhost.MapGuest},
			{Kind: core("Node"), Map: vmhost.MapIndex("by-node")},
			{Kind: apps("Deployment"), Map: vmhost.MapLabel("case")},
			{Kind: apps("StatefulSet"), Map: vmhost.MapField("spec.serviceName")},
			{Kind: core("Service"), Map: vmhost.MapName},
			{Kind: core("Endpoints"), Map: vmhost.MapOwner},
		},
		Reads:       []vmhost.Watch{{Kind: namespace}, {Kind: pod, Live: true}},
		Finalizer:   "conformance.vmhost.dev/clean-up",
		Previous:    true,
		EventSource: "conformance-controller",
		Concurrency: 2,
		Retry:       vmhost.Backoff{BaseMs: 10, CapMs: 20000, MaxRetries: vmhost.Ptr(uint32(7)), Bucket: vmhost.Bucket{PerSecond: 10, Burst: 100}},
	}
	return vmhost.Description{
		Name:        "conformance",
		Version:     "1.2.3",
		Controllers: []vmhost.Controller{cases, {Name: "ticker", Timer: vmhost.Every(time.Minute)}, {Name: "starter", Timer: vmhost.Once()}},
		Webhooks:    []vmhost.Webhook{guard(), defaults()},
		Conversions: []vmhost.Conversion{{
			Name: "convert", Group: "conformance.vmhost.dev", Kind: "Case", Resource: "cases", Versions: []string{"v1", "v2"}, Reads: []vmhost.Watch{{Kind: configMap}},
		}},
		Permissions: []vmhost.Permission{
			{Kind: caseKind, Verbs: []vmhost.Verb{vmhost.VerbPatch}},
			{Kind: caseKind, Verbs: []vmhost.Verb{vmhost.VerbPatch}, Subresources: []string{"status"}, Namespaces: []string{"default"}, Optional: true},
			{Kind: configMap, Verbs: []vmhost.Verb{vmhost.VerbCreate, vmhost.VerbPatch, vmhost.VerbDelete}},
		},
		HTTP: []vmhost.HTTPGrant{api(), {Host: "*.example.com"}},
		Setup: vmhost.Setup{CustomResourceDefinitions: []any{map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1",
			"kind":       "CustomResourceDefinition",
			"metadata":   map[string]string{"name": "cases.conformance.vmhost.dev"},
			"spec":       map[string]any{"group": "conformance.vmhost.dev", "names": map[string]string{"plural": "cases"}},
		}}},
		SettingsSchema: map[string]any{
			"type":     "object",
			"required": []string{"given"},
			"properties": map[string]any{
				"given": map[string]any{"type": "string", "minLength": 1},
				"limit": map[string]any{"type": "integer", "minimum": 1, "default": 10},
			},
		},
	}
}

func api() vmhost.HTTPGrant {
	return vmhost.HTTPGrant{
		Host:       "api.example.com",
		Port:       8080,
		Scheme:     "http",
		Methods:    []string{"GET", "POST"},
		PathPrefix: "/v1",
		Headers: []vmhost.HeaderFrom{
			{Name: "Authorization", Prefix: "Bearer ", Secret: &vmhost.SecretKey{Namespace: "default", Name: "api", Key: "token"}},
			{Name: "X-Tenant", Setting: "tenant"},
		},
		URLSetting:   "url",
		AllowPrivate: true,
	}
}

func guard() vmhost.Webhook {
	return vmhost.Webhook{
		Name: "guard",
		Type: vmhost.Validating,
		Rules: []vmhost.Rule{{
			APIGroups:   []string{"conformance.vmhost.dev"},
			APIVersions: []string{"v1"},
			Resources:   []string{"cases", "cases/status"},
			Operations:  []vmhost.ReviewOperation{vmhost.ReviewCreate, vmhost.ReviewUpdate, vmhost.ReviewDelete},
			Scope:       "Namespaced",
		}},
		MatchConditions: []vmhost.MatchCondition{{Name: "not-me", Expression: "request.userInfo.username != 'me'"}},
		TimeoutSeconds:  3,
		Reads:           []vmhost.Watch{{Kind: configMap}},
	}
}

func defaults() vmhost.Webhook {
	all := []string{"*"}
	inD := vmhost.LabelRequirement{Key: "c", Operator: "In", Values: []string{"d"}}
	return vmhost.Webhook{
		Name:               "defaults",
		Type:               vmhost.Mutating,
		Rules:              []vmhost.Rule{{APIGroups: all, APIVersions: all, Resources: []string{"*/*"}, Operations: []vmhost.ReviewOperation{vmhost.ReviewAny}}},
		NamespaceSelector:  &vmhost.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		ObjectSelector:     &vmhost.LabelSelector{MatchExpressions: []vmhost.LabelRequirement{inD}},
		FailurePolicy:      vmhost.IgnoreOnFailure,
		SideEffects:        "NoneOnDryRun",
		ReinvocationPolicy: "IfNeeded",
		MatchPolicy:        "Exact",
	}
}
