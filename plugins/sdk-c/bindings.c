/* The output of `wit-bindgen c` for wit/v1, changed in two ways without editing it:
 * - `free` does nothing: all data that crosses the boundary is in the arena of vmhost.c, which
 *   defines `cabi_realloc` and the post-return functions.
 * - `vmhost build` (or `wasm-tools component embed`) embeds the world, instead of an object file
 *   that would have to be linked. */
#ifdef __wasm__
#include <stdlib.h>
#include <string.h>
#define free(pointer) ((void)(pointer))
#include "bindings/plugin.c"

void __component_type_object_force_link_plugin(void) {}
#endif
