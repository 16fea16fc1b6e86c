package main

// The ten effects, and the four in clusters.

import "github.com/vmhost/vmhost/plugins/sdk-go"

func tenEffects() vmhost.Outcome {
	a, b := configMap.Key("default", "a"), configMap.Key("default", "b")
	object := map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]string{"name": "a", "namespace": "default"},
		"data":       map[string]string{"k": "v"},
	}
	generated := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"generateName": "a-", "namespace": "default"}}
	return vmhost.AwaitChange(
		vmhost.Apply{Object: object, Subresource: "status", Polite: true, Existing: true, IfVersion: "7"},
		vmhost.Apply{Object: object},
		vmhost.MergePatch{Key: a, Subresource: "status", Body: map[string]any{"data": map[string]any{"k": nil}}, IfVersion: "8"},
		vmhost.JSONPatch{Key: namespace.Key("", "n"), Operations: []vmhost.Operation{
			vmhost.Test("/a", 1), vmhost.Add("/b/-", "x"), vmhost.Replace("/c~1d", nil), vmhost.Remove("/e"),
		}},
		vmhost.Create{Object: generated},
		vmhost.Delete{Key: a, UID: "u-1", IfVersion: "9", Propagation: vmhost.Foreground},
		vmhost.Delete{Key: b},
		vmhost.Event{Type: vmhost.Warning, Reason: "Broken", Action: "Mending", Note: "it broke: ☃", Related: &a},
		vmhost.Event{Reason: "Fine"},
		vmhost.Other{Name: "future", Body: map[string]int{"x": 1}},
	)
}

func inClusters() vmhost.Outcome {
	a := configMap.Key("default", "a")
	deployment := vmhost.Kind{Group: "apps", Version: "v1", Kind: "Deployment"}
	meta := func(name string) map[string]string { return map[string]string{"name": name, "namespace": "default"} }
	data := map[string]any{"data": map[string]string{"k": "v"}}
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("a"), "data": data["data"]}
	made := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("c")}
	return vmhost.AwaitChange(
		vmhost.InCluster{Cluster: "east", Effect: vmhost.Apply{Object: object}},
		vmhost.InCluster{Effect: vmhost.MergePatch{Key: a, Subresource: "status", Body: data, IfVersion: "8"}},
		vmhost.InCluster{Cluster: "east", Effect: vmhost.Create{Object: made}},
		vmhost.InCluster{Cluster: "east", Effect: vmhost.Delete{Key: deployment.Key("default", "d"), UID: "u-1", Propagation: vmhost.Orphan}},
	)
}
