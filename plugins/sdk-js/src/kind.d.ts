/** A group, version and kind. No group: the core group. */
export interface Kind {
  readonly group?: string;
  readonly version: string;
  readonly kind: string;
}

/** A kind as requests carry it; the core group is the empty string. */
export interface Gvk {
  group: string;
  version: string;
  kind: string;
}

/** Names one object of the cluster. */
export interface ObjectKey {
  kind: Gvk;
  /** Null exactly when the kind is cluster-scoped. */
  namespace: string | null;
  name: string;
}

/** Names one object of a kind that is known from where it stands. */
export interface ObjectName {
  /** None exactly when the kind is cluster-scoped. */
  namespace?: string | null;
  name: string;
}

/** A kind of an API group: `kind("apps", "v1", "Deployment")`. Spread it into a watch or a permission. */
export function kind(group: string, version: string, name: string): Kind;

/** A kind of the core group: `core("v1", "ConfigMap")`. */
export function core(version: string, name: string): Kind;

/** Names an object; a namespace of null: of a cluster-scoped kind. */
export function objectKey(kind: Kind, namespace: string | null, name: string): ObjectKey;
