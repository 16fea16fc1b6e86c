// The reviews: admission and conversion. All functions are async, to test that promises run to
// completion.

import { allow, type Batch, type ConvertedObject, deny, type Review, type Verdict } from "@vmhost/plugin";

interface Case {
  spec: { case: string; text?: string; old?: number; list?: number[]; [name: string]: unknown };
}

const REVIEWS: Record<string, (review: Review<Case>) => Promise<Verdict>> = {
  allow: async ({ userInfo }) => allow().warning("careful: ☃").auditAnnotation("user", userInfo.username ?? ""),
  deny: async () => deny("no: ☃"),
  "deny-as": async () => deny("taken", { code: 409, reason: "Conflict" }),
  delete: async () => allow().warning("deleted"),

  async review({ uid, operation, kind, resource, subResource, name, namespace, dryRun }) {
    const told = [uid, operation, kind.kind, resource.resource, subResource, name, namespace ?? "", dryRun ? "dry run" : ""];
    return told.reduce((verdict, text) => verdict.warning(text), allow());
  },

  async mutate(review) {
    return review.mutate(({ spec }) => {
      spec["a/b~c"] = { x: null };
      spec.text = "b";
      delete spec.old;
      spec.list?.splice(1, 0, 9);
    });
  },

  operations: async () => allow().add("/spec/a", 1).remove("/spec/b"),
  same: async (review) => review.mutate(() => {}),

  async error() {
    throw await new Error("broken on purpose");
  },
};

export async function admit(review: Review<Case>): Promise<Verdict> {
  const name = (review.object ?? review.oldObject)?.spec.case ?? "";
  const run = Object.hasOwn(REVIEWS, name) ? REVIEWS[name] : undefined;
  return run === undefined ? deny(`unknown case ${name}`) : await run(review);
}

export async function convert(batch: Batch): Promise<ConvertedObject[]> {
  const [from, to] = batch.version === "v2" ? ["case", "name"] : ["name", "case"];
  return batch.each(({ spec }: { spec: Record<string, unknown> }) => {
    if (!(from in spec)) return;
    if (spec[from] === "bad") throw new Error("bad on purpose");
    spec[to] = spec[from];
    delete spec[from];
  });
}
