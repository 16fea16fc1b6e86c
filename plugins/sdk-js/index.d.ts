/** Write a vmhost policy in JavaScript or TypeScript. The README has a complete plugin. */
export * from "./src/batch.js";
export * from "./src/cluster.js";
export * from "./src/description.js";
export * from "./src/effects.js";
export * from "./src/json.js";
export * from "./src/kind.js";
export * from "./src/log.js";
export * from "./src/meta.js";
export * from "./src/outcome.js";
export * from "./src/plugin.js";
export * from "./src/request.js";
export * from "./src/review.js";
export * from "./src/webhook.js";
