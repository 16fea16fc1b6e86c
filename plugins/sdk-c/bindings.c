/* What `wit-bindgen c` made of wit/v1, with two changes that need no edit of it:
 * - `free` does nothing: all that crosses the border lies in the arena of vmhost.c, which defines `cabi_realloc` and the post-return functions.
 * - The world is embedded by `vmhost build` (or `wasm-tools component embed`), not by an object file that would have to be linked in. */
#ifdef __wasm__
#include <stdlib.h>
#include <string.h>
#define free(pointer) ((void)(pointer))
#include "bindings/plugin.c"

void __component_type_object_force_link_plugin(void) {}
#endif
