// The reviews of the conformance guest.
#include "vmhost.hpp"

void review(const vmhost::Review &review, vmhost::Verdict &verdict);
const char *one(vmhost::Value object, const vmhost::Batch &batch);
