// The first policy, in JavaScript: completes a VirtualMachine that is creating, or fails it if its
// size is impossible.

import { awaitChange, event, kind, patch, plugin } from "@vmhost/plugin";

const VIRTUAL_MACHINE = kind("cloud.waibizi.com", "v1", "VirtualMachine");

export const controller = plugin({
  description: {
    name: "vm",
    version: "0.1.0",
    controllers: [
      {
        name: "virtualmachines",
        primary: { ...VIRTUAL_MACHINE, wantedFields: ["spec.status", "spec.memory", "spec.disk"] },
        eventSource: "vm-dynamic-controller",
      },
    ],
    permissions: [{ ...VIRTUAL_MACHINE, verbs: ["patch"] }],
  },

  reconcile({ key, object }) {
    if (object === null) console.info(`the virtual machine ${key.name} is gone`);
    const spec = object?.spec ?? {};
    if (spec.status !== "creating") return awaitChange();
    // Tests what was seen: if a user has changed the status or the size in the meantime, the patch
    // changes nothing and the host retries the key.
    const seen = patch.json(key).test("/spec/status", "creating");
    // An absent size is the maker's choice.
    const field = ["memory", "disk"].find((field) => (spec[field] ?? 1) <= 0);
    if (field === undefined) return awaitChange(seen.replace("/spec/status", "complete"), event.normal("Completed", "The virtual machine is complete"));
    const size = spec[field];
    return awaitChange(
      seen.test(`/spec/${field}`, size).replace("/spec/status", "fail"),
      event.warning("Impossible", `spec.${field} is ${size}, and must be more than 0`),
    );
  },
});
