"""The policy of __name__: an object is stored only if its `spec.who` names somebody."""

from dataclasses import dataclass, field

from vmhost_plugin import Description, Operation, Policy, Review, Rule, Verdict, Webhook, WebhookType, plugin


@dataclass
class Spec:
    who: str = ""


@dataclass
class __kind__Object:
    """The fields that the policy needs. A value of another type is an error that names the field.
    """

    spec: Spec = field(default_factory=Spec)


@plugin
class Guard(Policy):
    def describe(self) -> Description:
        rule = Rule(["__group__"], ["__version__"], ["__plural__"], [Operation.CREATE, Operation.UPDATE])
        return Description("__name__", version="0.1.0", webhooks=[Webhook("who", WebhookType.VALIDATING, [rule])])

    def admit(self, review: Review) -> Verdict:
        if review.object is None:
            return Verdict.allow()  # a deletion
        if not review.object.read(__kind__Object).spec.who:
            return Verdict.deny("spec.who must name somebody")
        return Verdict.allow()
