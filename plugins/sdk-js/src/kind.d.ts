/** A group, version and kind. Without a group: the core group. */
export interface Kind {
  readonly group?: string;
  readonly version: string;
  readonly kind: string;
}

/** A kind as in requests; the core group is the empty string. */
export interface Gvk {
  group: string;
  version: string;
  kind: string;
}

/** Names one object of the cluster. */
export interface ObjectKey {
  kind: Gvk;
  /** Null if and only if the kind is cluster-scoped. */
  namespace: string | null;
  name: string;
}

/** Names one object whose kind is known from the context. */
export interface ObjectName {
  /** Absent if and only if the kind is cluster-scoped. */
  namespace?: string | null;
  name: string;
}

/**
 * Returns a kind of an API group: `kind("apps", "v1", "Deployment")`. Spread it into a watch or a
 * permission.
 */
export function kind(group: string, version: string, name: string): Kind;

/** Returns a kind of the core group: `core("v1", "ConfigMap")`. */
export function core(version: string, name: string): Kind;

/** Names an object; the namespace is null for a cluster-scoped kind. */
export function objectKey(kind: Kind, namespace: string | null, name: string): ObjectKey;
