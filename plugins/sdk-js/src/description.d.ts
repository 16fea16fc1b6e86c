import type { Kind } from "./kind.js";
import type { Conversion, Webhook } from "./webhook.js";

/**
 * The description of a plugin; its schema is `description.schema.json` of the contract. The host's
 * errors name the invalid field.
 */
export interface Description {
  /** The plugin's name. It owns fields: do not change it. */
  name: string;
  /** The plugin's own version, for display. */
  version?: string;
  /** May be absent if there are webhooks or conversions. */
  controllers?: ControllerDescription[];
  /** Admission webhooks, which `admit` answers. */
  webhooks?: Webhook[];
  /** Custom resources whose versions `convert` converts. */
  conversions?: Conversion[];
  /**
   * What the plugin's effects may write. Watching and reading the kinds that its controllers name
   * is implied.
   */
  permissions?: Permission[];
  /** The HTTP requests that the plugin may send, with `fetch` of `@vmhost/plugin/http`. */
  http?: HttpGrant[];
  setup?: {
    /** Installed before the controllers start, if the operator allows it (`--install-crds`). */
    customResourceDefinitions?: object[];
  };
  /**
   * The structural schema (as `openAPIV3Schema` of a CustomResourceDefinition) that the settings of
   * a Plugin object have to fit. A setting that is not a string reaches the policy as JSON.
   */
  settingsSchema?: object;
}

/** Requests to a service outside of the cluster. */
export interface HttpGrant {
  /** A name, `*.domain`, or an address. */
  host: string;
  port?: number;
  scheme?: "https" | "http";
  /** Default: `GET` only. */
  methods?: ("GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS")[];
  pathPrefix?: string;
  /** Headers that the host adds; the policy never sees their values. */
  headers?: { name: string; prefix?: string; secret?: { namespace: string; name: string; key: string }; setting?: string }[];
  /** The operator's setting with the URL of the service, which replaces scheme, host and port. */
  urlSetting?: string;
  /** The host may have a private address; the operator has to name it, too. */
  allowPrivate?: boolean;
}

/** One controller: its keys, what wakes them, and how they are processed. */
export type ControllerDescription = ControllerFields & ({ primary: Primary; timer?: never } | { timer: Timer; primary?: never });

export interface ControllerFields {
  /** Unique in the plugin; metrics and logs carry it. */
  name: string;
  /**
   * Kinds of objects that the controller creates: a change wakes the primary in the object's
   * controller reference.
   */
  owns?: Primary[];
  /** Other kinds that wake keys. */
  watches?: (Primary & { map: WatchMap })[];
  /**
   * Other kinds that the controller reads. They wake no keys. `live`: nothing is cached, and only
   * live reads work.
   */
  reads?: (Primary & { live?: boolean })[];
  /**
   * Added to each object before the policy first sees it, removed after `finalized()`.
   * `domain/name`.
   */
  finalizer?: string;
  /** Also pass the object as of the last turn that succeeded. */
  previous?: boolean;
  /** The reporter of Events. Default: the names of plugin and controller. */
  eventSource?: string;
  /** The number of keys that are processed at once. Default: 4. */
  concurrency?: number;
  retry?: Retry;
  /**
   * In which clusters the keys are: `home` (the default), `members` (all others of the host, with a
   * queue for each), or a label selector of members.
   */
  clusters?: string;
}

/** A kind that a controller watches. */
export interface Primary extends Kind {
  /** Only objects with these labels, in kubectl's form. Other objects are not in the cache. */
  labelSelector?: string;
  /** Only objects with these fields, such as `metadata.name=x`. */
  fieldSelector?: string;
  /** Cache only these fields (dotted paths) besides `apiVersion`, `kind` and `metadata`. */
  wantedFields?: string[];
  /** Cache only `apiVersion`, `kind` and `metadata`. */
  metadataOnly?: boolean;
  /** Indexes by name: the path of a field, such as `spec.volumes[*].secret.secretName`. */
  indexes?: Record<string, string>;
  predicates?: Predicates;
}

/**
 * Which changes wake keys; all conditions must hold. A deletion and the beginning of a deletion
 * always wake keys.
 */
export interface Predicates {
  /** In an update, at least one of these differs. */
  changed?: ("generation" | "labels" | "annotations" | "resourceVersion")[];
  /** The old or the new object has these labels. */
  labelSelector?: string;
  /** The old or the new object has these fields, on any path. */
  fieldSelector?: string;
  /** A CEL expression over `object` and `oldObject` (null for a new object). */
  cel?: string;
}

/**
 * Which keys a change wakes. `name`: the primary of the same name; `owner`: primaries in its owner
 * references; `controller`: the one in its controller reference; `guest`: those that `mapChanges`
 * returns; or those named by the value of a label or of a field, or all primaries whose index
 * contains the object's name.
 */
export type WatchMap = "name" | "owner" | "controller" | "guest" | { label: string } | { field: string } | { index: string };

/**
 * One turn at the start, and then one per period in milliseconds; or one at the start and one after
 * each swap.
 */
export type Timer = { everyMs: number } | { once: true };

/** The back-off of a failing key: `baseMs * 2^failures`, at most `capMs`. */
export interface Retry {
  baseMs?: number;
  capMs?: number;
  /** The number of retries after which a failing key is dropped and reported. */
  maxRetries?: number;
  /** A rate limit for the retries of all keys together. */
  bucket?: { perSecond: number; burst: number };
}

/** What the plugin's effects may do. */
export interface Permission extends Kind {
  /** `patch` covers apply and patch. */
  verbs: ("create" | "patch" | "delete")[];
  /** Only these subresources. If absent, the object itself and no subresource. */
  subresources?: string[];
  /** Only in these namespaces. If absent, all namespaces and cluster-scoped objects. */
  namespaces?: string[];
  /**
   * The plugin also works without it: a Plugin object that is not granted it runs without it,
   * instead of not at all.
   */
  optional?: boolean;
}
