// Lines for the host's log, and the `console` that writes them.

import * as host from "#host";

const line =
  (level) =>
  (...values) =>
    host.log(level, values.map(show).join(" ").toWellFormed());

/** Writes a line to the host's log. Several values are joined by a space. */
export const log = { trace: line("trace"), debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };

/** The part of `console` that policies use. */
export const console = { log: log.info, info: log.info, warn: log.warn, error: log.error, debug: log.debug, trace: log.trace };

function show(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) return stackOf(value);
  try {
    return (
      JSON.stringify(value, (_, value) => (typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value)) ? String(value) : value)) ??
      textOf(value)
    );
  } catch {
    return textOf(value);
  }
}

/**
 * Returns an error's text for people: its message, prefixed with its name if that is not just
 * "Error".
 */
export function messageOf(error) {
  if (!(error instanceof Error)) return typeof error === "object" && error !== null ? show(error) : textOf(error);
  const message = textOf(error.message);
  return error.name === "Error" ? message : `${textOf(error.name)}: ${message}`;
}

/**
 * Returns an error with its stack, and its cause. Not all engines put the message into the stack,
 * and QuickJS does not know the bundle's name.
 */
export function stackOf(error) {
  if (!(error instanceof Error)) return messageOf(error);
  const stack = typeof error.stack === "string" ? error.stack.trimEnd().replaceAll("<input>", ".vmhost/plugin.js") : "";
  const whole = stack.startsWith(`${error.name}: ${error.message}`) ? stack : `${messageOf(error)}\n${stack}`;
  return error.cause === undefined || error.cause === error ? whole : `${whole}\ncaused by: ${messageOf(error.cause)}`;
}

/** Returns a value as text; a failure of the value's own conversion is ignored. */
function textOf(value) {
  try {
    return String(value).toWellFormed();
  } catch {
    return "a value that cannot be shown";
  }
}
