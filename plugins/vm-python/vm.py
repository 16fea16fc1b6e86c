"""The first policy: completes a VirtualMachine that is creating, or fails it if its size is
impossible."""

import logging
from dataclasses import dataclass, field

from vmhost_plugin import Controller, Description, Event, Kind, Op, Outcome, Patch, Permission, Policy, Request, Verb, Watch, plugin

VIRTUAL_MACHINE = Kind("cloud.waibizi.com", "v1", "VirtualMachine")


@dataclass
class Spec:
    status: str = ""
    memory: int | None = None
    disk: int | None = None


@dataclass
class VirtualMachine:
    spec: Spec = field(default_factory=Spec)


@plugin
class Vm(Policy):
    def describe(self) -> Description:
        watch = Watch(VIRTUAL_MACHINE, wanted_fields=["spec.status", "spec.memory", "spec.disk"])
        controller = Controller("virtualmachines", watch, event_source="vm-dynamic-controller")
        return Description("vm", [controller], version="0.1.0", permissions=[Permission(VIRTUAL_MACHINE, [Verb.PATCH])])

    def reconcile(self, request: Request) -> Outcome:
        if request.object is None:
            logging.info("the virtual machine %s is gone", request.key.name)
            return Outcome.await_change()
        spec = request.object.read(VirtualMachine).spec
        if spec.status != "creating":
            return Outcome.await_change()
        # Tests what was seen: if a user has changed the status or the size in the meantime, the
        # patch changes nothing and the host retries the key.
        seen = Op.test("/spec/status", "creating")
        for name, size in ("memory", spec.memory), ("disk", spec.disk):
            if size is not None and size <= 0:
                patch = Patch.json(request.key, seen, Op.test(f"/spec/{name}", size), Op.replace("/spec/status", "fail"))
                return Outcome.await_change(patch, Event.warning("Impossible", f"spec.{name} is {size}, and must be more than 0"))
        patch = Patch.json(request.key, seen, Op.replace("/spec/status", "complete"))
        return Outcome.await_change(patch, Event.normal("Completed", "The virtual machine is complete"))
