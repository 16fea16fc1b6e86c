"""The policy of __name__: greets whom an object's `spec.who` names, in its `status.message`."""

from dataclasses import dataclass, field

from vmhost_plugin import Controller, Description, Event, Kind, Outcome, Patch, Permission, Policy, Request, Verb, Watch, plugin

KIND = Kind("__group__", "__version__", "__kind__")


@dataclass
class Spec:
    who: str = "world"


@dataclass
class Status:
    message: str = ""


@dataclass
class __kind__Object:
    """The fields that the policy needs. A value of another type is an error that names the field.
    """

    spec: Spec = field(default_factory=Spec)
    status: Status = field(default_factory=Status)


@plugin
class Greeter(Policy):
    def describe(self) -> Description:
        controller = Controller("__plural__", Watch(KIND, wanted_fields=["spec.who", "status.message"]))
        return Description("__name__", [controller], version="0.1.0", permissions=[Permission(KIND, [Verb.PATCH], subresources=["status"])])

    def reconcile(self, request: Request) -> Outcome:
        if request.object is None:
            return Outcome.await_change()
        found = request.object.read(__kind__Object)
        message = f"hello, {found.spec.who}"
        if found.status.message == message:
            return Outcome.await_change()
        patch = Patch.merge(request.key, {"status": {"message": message}}, subresource="status")
        return Outcome.await_change(patch, Event.normal("Greeted", message))
