// The policy of __name__: it greets each __kind__ in its status.

import { awaitChange, event, kind, type KubeObject, patch, plugin } from "@vmhost/plugin";

interface __kind__ extends KubeObject {
  spec?: { who?: string };
  status?: { message?: string };
}

const KIND = kind("__group__", "__version__", "__kind__");

export const controller = plugin<__kind__>({
  description: {
    name: "__name__",
    version: "0.1.0",
    controllers: [{ name: "__plural__", primary: { ...KIND, wantedFields: ["spec.who", "status.message"] } }],
    permissions: [{ ...KIND, verbs: ["patch"], subresources: ["status"] }],
  },

  /** One turn: reads the current object, returns what the host must do. */
  reconcile({ key, object }) {
    if (object === null) return awaitChange();
    const message = `hello, ${object.spec?.who ?? "world"}`;
    if (object.status?.message === message) return awaitChange();
    return awaitChange(patch.merge(key, { status: { message } }, { subresource: "status" }), event.normal("Greeted", message));
  },
});
