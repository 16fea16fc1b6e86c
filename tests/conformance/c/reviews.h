/* The reviews of the conformance guest. */
#include "vmhost.h"

void admit(const vmhost_review *review, vmhost_verdict *verdict);
void convert(const vmhost_batch *batch, vmhost_converted *converted);
