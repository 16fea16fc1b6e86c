// __name__: a __kind__ is stored only if its `spec.who` names somebody.
#include "vmhost.hpp"

using namespace vmhost;

static void review(const Review &review, Verdict &verdict) {
    if (!review.object) return verdict.allow(); // a deletion
    if (review.object.string("/spec/who").value_or("").empty()) return verdict.deny("spec.who must name somebody");
    verdict.allow();
}

const Description vmhost_plugin = {
    .name = "__name__",
    .version = "0.1.0",
    .webhooks = {{
        .name = "who",
        .rules = {{
            .api_groups = {"__group__"},
            .api_versions = {"__version__"},
            .resources = {"__plural__"},
            .operations = VMHOST_ON_CREATE | VMHOST_ON_UPDATE,
        }},
    }},
    .admit = admit<review>,
};
