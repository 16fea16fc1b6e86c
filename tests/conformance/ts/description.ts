// The description of the conformance guest, with every field of the schema.

import { core, type Description, kind } from "@vmhost/plugin";

export const CASE = kind("conformance.vmhost.dev", "v1", "Case");
export const CONFIG_MAP = core("v1", "ConfigMap");
export const DEPLOYMENT = kind("apps", "v1", "Deployment");
export const NAMESPACE = core("v1", "Namespace");
export const POD = core("v1", "Pod");

export const description: Description = {
  name: "conformance",
  version: "1.2.3",
  controllers: [
    {
      name: "cases",
      primary: {
        ...CASE,
        labelSelector: "app=case",
        fieldSelector: "metadata.name!=ignored",
        wantedFields: ["spec", "status.phase"],
        indexes: { "by-node": "spec.nodeName" },
        predicates: { changed: ["generation", "labels"], labelSelector: "tier in (a,b)", fieldSelector: "spec.paused!=true", cel: "object.spec.case != ''" },
      },
      owns: [CONFIG_MAP],
      watches: [
        { ...core("v1", "Secret"), metadataOnly: true, map: "guest" },
        { ...core("v1", "Node"), map: { index: "by-node" } },
        { ...DEPLOYMENT, map: { label: "case" } },
        { ...kind("apps", "v1", "StatefulSet"), map: { field: "spec.serviceName" } },
        { ...core("v1", "Service"), map: "name" },
        { ...core("v1", "Endpoints"), map: "owner" },
      ],
      reads: [NAMESPACE, { ...POD, live: true }],
      finalizer: "conformance.vmhost.dev/clean-up",
      previous: true,
      eventSource: "conformance-controller",
      concurrency: 2,
      retry: { baseMs: 10, capMs: 20000, maxRetries: 7, bucket: { perSecond: 10, burst: 100 } },
    },
    { name: "ticker", timer: { everyMs: 60000 } },
    { name: "starter", timer: { once: true } },
  ],
  webhooks: [
    {
      name: "guard",
      type: "validating",
      rules: [
        {
          apiGroups: ["conformance.vmhost.dev"],
          apiVersions: ["v1"],
          resources: ["cases", "cases/status"],
          operations: ["CREATE", "UPDATE", "DELETE"],
          scope: "Namespaced",
        },
      ],
      matchConditions: [{ name: "not-me", expression: "request.userInfo.username != 'me'" }],
      timeoutSeconds: 3,
      reads: [CONFIG_MAP],
    },
    {
      name: "defaults",
      type: "mutating",
      rules: [{ apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"], operations: ["*"] }],
      namespaceSelector: { matchLabels: { a: "b" } },
      objectSelector: { matchExpressions: [{ key: "c", operator: "In", values: ["d"] }] },
      failurePolicy: "Ignore",
      sideEffects: "NoneOnDryRun",
      reinvocationPolicy: "IfNeeded",
      matchPolicy: "Exact",
    },
  ],
  conversions: [{ name: "convert", group: "conformance.vmhost.dev", kind: "Case", resource: "cases", versions: ["v1", "v2"], reads: [CONFIG_MAP] }],
  permissions: [
    { ...CASE, verbs: ["patch"] },
    { ...CASE, verbs: ["patch"], subresources: ["status"], namespaces: ["default"], optional: true },
    { ...CONFIG_MAP, verbs: ["create", "patch", "delete"] },
  ],
  http: [
    {
      host: "api.example.com",
      port: 8080,
      scheme: "http",
      methods: ["GET", "POST"],
      pathPrefix: "/v1",
      headers: [
        { name: "Authorization", prefix: "Bearer ", secret: { namespace: "default", name: "api", key: "token" } },
        { name: "X-Tenant", setting: "tenant" },
      ],
      urlSetting: "url",
      allowPrivate: true,
    },
    { host: "*.example.com" },
  ],
  setup: {
    customResourceDefinitions: [
      {
        apiVersion: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        metadata: { name: "cases.conformance.vmhost.dev" },
        spec: { group: "conformance.vmhost.dev", names: { plural: "cases" } },
      },
    ],
  },
  settingsSchema: {
    type: "object",
    required: ["given"],
    properties: { given: { type: "string", minLength: 1 }, limit: { type: "integer", minimum: 1, default: 10 } },
  },
};
