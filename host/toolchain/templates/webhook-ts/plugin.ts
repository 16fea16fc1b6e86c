// The policy of __name__: a __kind__ is stored only if its `spec.who` names somebody.

import { allow, deny, type KubeObject, plugin, type Review, type WebhookRule } from "@vmhost/plugin";

interface __kind__ extends KubeObject {
  spec?: { who?: string };
}

const RULE: WebhookRule = { apiGroups: ["__group__"], apiVersions: ["__version__"], resources: ["__plural__"], operations: ["CREATE", "UPDATE"] };

export const controller = plugin({
  description: {
    name: "__name__",
    version: "0.1.0",
    webhooks: [{ name: "who", type: "validating", rules: [RULE] }],
  },

  /** One review: reads what would be stored, returns whether it may be. */
  admit({ object }: Review<__kind__>) {
    if (object === null) return allow(); // a deletion
    const who = object.spec?.who;
    return typeof who === "string" && who !== "" ? allow() : deny("spec.who must name somebody");
  },
});
