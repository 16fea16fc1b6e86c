/**
 * Writes lines to the host's log, which adds controller, object and reconcile ID. Several values
 * are joined by a space; values other than strings are written as JSON.
 */
export const log: Record<"trace" | "debug" | "info" | "warn" | "error", (...values: unknown[]) => void>;

declare global {
  /**
   * `log` and `info` write at level info of the host's log, the others at their own. No format
   * strings.
   */
  interface Console {
    log(...values: any[]): void;
    info(...values: any[]): void;
    warn(...values: any[]): void;
    error(...values: any[]): void;
    debug(...values: any[]): void;
    trace(...values: any[]): void;
  }
  var console: Console;
}
