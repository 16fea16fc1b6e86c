/* __name__: a __kind__ is stored only if its `spec.who` names somebody. */
#include "vmhost.h"

static void admit(const vmhost_review *review, vmhost_verdict *verdict) {
    const char *who = vmhost_string(review->object, "/spec/who");
    if (!review->object.text || (who && *who)) vmhost_allow(verdict); /* without an object: a deletion */
    else vmhost_deny(verdict, "spec.who must name somebody");
}

const vmhost_description vmhost_plugin = {
    .name = "__name__",
    .version = "0.1.0",
    .webhooks = VMHOST_WEBHOOKS({
        .name = "who",
        .rules = VMHOST_RULES({
            .api_groups = VMHOST_STRINGS("__group__"),
            .api_versions = VMHOST_STRINGS("__version__"),
            .resources = VMHOST_STRINGS("__plural__"),
            .operations = VMHOST_ON_CREATE | VMHOST_ON_UPDATE,
        }),
    }),
    .admit = admit,
};
