// The reviews: admission and conversion.

import { allow, deny } from "@vmhost/plugin";

const REVIEWS = {
  allow: ({ userInfo }) => allow().warning("careful: ☃").auditAnnotation("user", userInfo.username),
  deny: () => deny("no: ☃"),
  "deny-as": () => deny("taken", { code: 409, reason: "Conflict" }),
  delete: () => allow().warning("deleted"),

  review({ uid, operation, kind, resource, subResource, name, namespace, dryRun }) {
    const told = [uid, operation, kind.kind, resource.resource, subResource, name, namespace ?? "", dryRun ? "dry run" : ""];
    return told.reduce((verdict, text) => verdict.warning(text), allow());
  },

  mutate: (review) =>
    review.mutate(({ spec }) => {
      spec["a/b~c"] = { x: null };
      spec.text = "b";
      delete spec.old;
      spec.list.splice(1, 0, 9);
    }),

  operations: () => allow().add("/spec/a", 1).remove("/spec/b"),
  same: (review) => review.mutate(() => {}),

  error() {
    throw new Error("broken on purpose");
  },
};

export function admit(review) {
  const name = (review.object ?? review.oldObject).spec.case;
  return Object.hasOwn(REVIEWS, name) ? REVIEWS[name](review) : deny(`unknown case ${name}`);
}

export function convert(batch) {
  const [from, to] = batch.version === "v2" ? ["case", "name"] : ["name", "case"];
  return batch.each(({ spec }) => {
    if (!(from in spec)) return;
    if (spec[from] === "bad") throw new Error("bad on purpose");
    spec[to] = spec[from];
    delete spec[from];
  });
}
