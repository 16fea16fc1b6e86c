/* vmhost_test.h: a stand-in for the host in a policy's native tests. Link `vmhost_test.c` and the
 * SDK's `*.c`, with any C compiler, preferably with `-fsanitize=address,undefined`. It calls the
 * same functions as the host, but carries out no effects: a test reads the outcome, which is a JSON
 * text:
 *
 *   {"effects":[{"patch":{"key":{"kind":{"group","version","kind"},"namespace","name"},
 *     "subresource","type":"json","body":"..."}}],"next":"await-change"}
 *
 * with the names of the contract (`next` with a value is an object, `{"retry":"text"}`), and
 * without the options that are none. Texts live until vmhost_test_end. */
#ifndef VMHOST_TEST_H
#define VMHOST_TEST_H

#include "../vmhost.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the description, or {"error":"text"}. */
const char *vmhost_test_describe(void);
const char *vmhost_test_reconcile(vmhost_request request);
/* Answer a review of a webhook (the `request` of an AdmissionReview), and convert a batch
 * ({"desiredAPIVersion","objects"}): return the answer, or the outcome if there is none. */
const char *vmhost_test_admit(const char *webhook, const char *request);
const char *vmhost_test_convert(const char *conversion, const char *batch);
/* Returns the keys, as [{"namespace","name"}], or {"error":"text"}. */
const char *vmhost_test_map_changes(vmhost_map_request request);

/* Set an object that cached and live reads find, a setting, and (with a code) the answer to all
 * reads. */
void vmhost_test_object(const char *json);
void vmhost_test_setting(const char *name, const char *value);
void vmhost_test_refuse_reads(vmhost_read_error error);
/* Sets the answer to requests with this method and URL (only the last one counts); others are not
 * sent. The host logs each request: `http: METHOD URL BODY`. */
void vmhost_test_response(const char *method, const char *url, int status, const char *body);
/* Returns what was logged since the last call, one line each: `info: text`. */
const char *vmhost_test_lines(void);

/* Returns one string of a JSON text, such as an outcome: vmhost_test_text(outcome,
 * "/effects/0/event/note"); "" if it is absent. */
const char *vmhost_test_text(const char *json, const char *pointer);
/* Compares two texts. If they differ, prints file, line and both texts, and vmhost_test_end returns
 * 1. */
#define VMHOST_TEST_EQUAL(have, want) vmhost_test_equal(__FILE__, __LINE__, (have), (want))
#define VMHOST_TEST(holds) vmhost_test_equal(__FILE__, __LINE__, (holds) ? "true" : "false: " #holds, "true")
void vmhost_test_equal(const char *file, int line, const char *have, const char *want);
/* Removes objects, settings, lines and the refusal. */
void vmhost_test_reset(void);
/* Frees everything, prints the number of comparisons, and returns the exit code for `main`. */
int vmhost_test_end(void);

#ifdef __cplusplus
}
#endif
#endif
