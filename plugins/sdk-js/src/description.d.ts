import type { Kind } from "./kind.js";

/** What a plugin says about itself; the schema is `description.schema.json` of the contract. The host names what is wrong in it. */
export interface Description {
  /** The plugin's name. It owns fields: do not change it. */
  name: string;
  /** The plugin's own version, for people. */
  version?: string;
  controllers: ControllerDescription[];
  /** What the plugin's effects may write. Watching and reading the kinds that its controllers name is implied. */
  permissions?: Permission[];
  setup?: {
    /** Installed before the controllers start, if the operator allows it (`--install-crds`). */
    customResourceDefinitions?: object[];
  };
}

/** One controller: what its keys are, what wakes them, and how they are worked on. */
export type ControllerDescription = ControllerFields & ({ primary: Primary; timer?: never } | { timer: Timer; primary?: never });

export interface ControllerFields {
  /** Unique in the plugin; metrics and logs carry it. */
  name: string;
  /** Kinds whose objects the controller makes: a change wakes the primary in the object's controller reference. */
  owns?: Primary[];
  /** Other kinds that wake keys. */
  watches?: (Primary & { map: WatchMap })[];
  /** Other kinds that the controller reads. They wake nobody. `live`: no cache is kept, and only live reads are answered. */
  reads?: (Primary & { live?: boolean })[];
  /** Put on each object before the policy first sees it, taken off when it says `finalized()`. `domain/name`. */
  finalizer?: string;
  /** Hand out the object as of the last turn that succeeded, too. */
  previous?: boolean;
  /** Who the Events are from. Default: made of the names of plugin and controller. */
  eventSource?: string;
  /** Keys worked on at once. Default: 4. */
  concurrency?: number;
  retry?: Retry;
}

/** A kind that a controller watches. */
export interface Primary extends Kind {
  /** Only objects with these labels, as kubectl writes it. The others are not in the cache. */
  labelSelector?: string;
  /** Only objects with these fields, such as `metadata.name=x`. */
  fieldSelector?: string;
  /** Keep only these fields (dotted paths) besides `apiVersion`, `kind` and `metadata`. */
  wantedFields?: string[];
  /** Keep `apiVersion`, `kind` and `metadata` only. */
  metadataOnly?: boolean;
  /** Indexes by name: the path of a field, such as `spec.volumes[*].secret.secretName`. */
  indexes?: Record<string, string>;
  predicates?: Predicates;
}

/** Which changes wake anybody; all conditions hold together. A deletion always does, and so does the beginning of one. */
export interface Predicates {
  /** Of an update: at least one of these differs. */
  changed?: ("generation" | "labels" | "annotations" | "resourceVersion")[];
  /** The old or the new object has these labels. */
  labelSelector?: string;
  /** The old or the new object has these fields, on any path. */
  fieldSelector?: string;
  /** A CEL expression over `object` and `oldObject` (null for a new object). */
  cel?: string;
}

/**
 * Which keys a change wakes. `name`: the primary of the same name; `owner`: primaries in its owner references; `controller`: the one in its
 * controller reference; `guest`: `mapChanges` says; or the value of a label, of a field, or all primaries whose index holds the object's name.
 */
export type WatchMap = "name" | "owner" | "controller" | "guest" | { label: string } | { field: string } | { index: string };

/** One turn at the start, and one every so many milliseconds; or one at the start and one after each swap. */
export type Timer = { everyMs: number } | { once: true };

/** Back-off of a failing key: `baseMs * 2^failures`, at most `capMs`. */
export interface Retry {
  baseMs?: number;
  capMs?: number;
  /** After so many retries of a failure the key is dropped and reported. */
  maxRetries?: number;
  /** A rate limit over the retries of all keys together. */
  bucket?: { perSecond: number; burst: number };
}

/** Something that the plugin's effects may do. */
export interface Permission extends Kind {
  /** `patch` covers apply and patch. */
  verbs: ("create" | "patch" | "delete")[];
  /** Only these subresources. Left out: the object itself and no subresource. */
  subresources?: string[];
  /** Only in these namespaces. Left out: all, and cluster-scoped objects. */
  namespaces?: string[];
}
