import type { Primary } from "./description.js";
import type { ReviewOperation } from "./review.js";

/** An admission webhook, which `admit` answers. */
export interface Webhook {
  /** Unique among the plugin's controllers, webhooks and conversions. */
  name: string;
  /** Only a mutating webhook may change objects. */
  type: "validating" | "mutating";
  /** Which requests the API server asks about. */
  rules: WebhookRule[];
  /** Only objects of these namespaces. */
  namespaceSelector?: LabelSelector;
  /** Only objects with these labels, before or after the change. */
  objectSelector?: LabelSelector;
  /** Only if all of these CEL expressions over `object`, `oldObject` and `request` are true. */
  matchConditions?: { name: string; expression: string }[];
  /** Without an answer the request is refused (`Fail`, the default) or let through. */
  failurePolicy?: "Fail" | "Ignore";
  sideEffects?: "None" | "NoneOnDryRun";
  /** How long the API server waits for the answer, 1 to 30. Default: 10. */
  timeoutSeconds?: number;
  /** Whether a mutating webhook is asked again if a later one changed the object. */
  reinvocationPolicy?: "Never" | "IfNeeded";
  /** Whether it is asked about the same object in other versions than those of the rules. */
  matchPolicy?: "Exact" | "Equivalent";
  /** Kinds that it reads. */
  reads?: (Primary & { live?: boolean })[];
}

/** Requests that a webhook is asked about. Each list may contain `*`. */
export interface WebhookRule {
  /** The core group is the empty string. */
  apiGroups: string[];
  apiVersions: string[];
  /** Plurals: `pods`, `pods/exec`. */
  resources: string[];
  operations: (ReviewOperation | "*")[];
  scope?: "*" | "Namespaced" | "Cluster";
}

/** A label selector, as Kubernetes writes it. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: "In" | "NotIn" | "Exists" | "DoesNotExist"; values?: string[] }[];
}

/** A custom resource whose versions `convert` converts into each other. */
export interface Conversion {
  /** Unique among the plugin's controllers, webhooks and conversions. */
  name: string;
  group: string;
  kind: string;
  /** The plural. */
  resource: string;
  versions: string[];
  /** Kinds that it reads. Not its own. */
  reads?: (Primary & { live?: boolean })[];
}
