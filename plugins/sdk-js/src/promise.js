// Promises that complete within one call. The contract's functions are synchronous, and QuickJS
// cannot run its own promise jobs within them. So the build turns `async` functions into generators
// over the global `Promise`, which inside the component is this class, and its jobs run here.

let jobs = [];
let unhandled = new Set();

/**
 * Runs the waiting jobs, and those that they add, until none is left. Returns the reasons of
 * unhandled rejections.
 */
export function runJobs() {
  while (jobs.length > 0) {
    const batch = jobs;
    jobs = [];
    for (const job of batch) job();
  }
  const reasons = [...unhandled].map((promise) => promise.reason);
  unhandled = new Set();
  return reasons;
}

/** Replaces the global function of this name. */
export function queueMicrotask(job) {
  if (typeof job !== "function") throw new TypeError("queueMicrotask takes a function");
  TurnPromise.resolve().then(job);
}

/** Replaces the global Promise. */
export class TurnPromise {
  #state = "pending";
  #result;
  #reactions = [];
  #isHandled = false;

  constructor(executor) {
    if (typeof executor !== "function") throw new TypeError("a Promise is made with a function");
    const { resolve, reject } = this.#functions();
    try {
      executor(resolve, reject);
    } catch (error) {
      reject(error);
    }
  }

  /** The reason of the rejection. */
  get reason() {
    return this.#result;
  }

  /** Returns the functions resolve and reject; only the first call of either counts. */
  #functions() {
    let isDone = false;
    const once = (settle) => (result) => {
      if (isDone) return;
      isDone = true;
      settle(result);
    };
    return { resolve: once((value) => this.#resolve(value)), reject: once((reason) => this.#settle("rejected", reason)) };
  }

  #resolve(value) {
    if (value === this) return this.#settle("rejected", new TypeError("a promise cannot wait for itself"));
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return this.#settle("fulfilled", value);
    let then;
    try {
      then = value.then;
    } catch (error) {
      return this.#settle("rejected", error);
    }
    if (typeof then !== "function") return this.#settle("fulfilled", value);
    jobs.push(() => {
      const { resolve, reject } = this.#functions();
      try {
        then.call(value, resolve, reject);
      } catch (error) {
        reject(error);
      }
    });
  }

  #settle(state, result) {
    this.#state = state;
    this.#result = result;
    if (state === "rejected" && !this.#isHandled) unhandled.add(this);
    for (const reaction of this.#reactions) jobs.push(() => reaction(state, result));
    this.#reactions = [];
  }

  then(onFulfilled, onRejected) {
    this.#isHandled = true;
    unhandled.delete(this);
    return new TurnPromise((resolve, reject) => {
      const reaction = (state, result) => {
        const handler = state === "fulfilled" ? onFulfilled : onRejected;
        if (typeof handler !== "function") return state === "fulfilled" ? resolve(result) : reject(result);
        try {
          resolve(handler(result));
        } catch (error) {
          reject(error);
        }
      };
      if (this.#state === "pending") this.#reactions.push(reaction);
      else jobs.push(() => reaction(this.#state, this.#result));
    });
  }

  catch(onRejected) {
    return this.then(undefined, onRejected);
  }

  finally(onFinally) {
    if (typeof onFinally !== "function") return this.then(onFinally, onFinally);
    return this.then(
      (value) => TurnPromise.resolve(onFinally()).then(() => value),
      (reason) =>
        TurnPromise.resolve(onFinally()).then(() => {
          throw reason;
        }),
    );
  }

  get [Symbol.toStringTag]() {
    return "Promise";
  }

  static resolve(value) {
    return value instanceof TurnPromise ? value : new TurnPromise((resolve) => resolve(value));
  }

  static reject(reason) {
    return new TurnPromise((_, reject) => reject(reason));
  }

  static withResolvers() {
    let functions;
    const promise = new TurnPromise((resolve, reject) => {
      functions = { resolve, reject };
    });
    return { promise, ...functions };
  }

  static try(call, ...args) {
    return new TurnPromise((resolve) => resolve(call(...args)));
  }

  static all(promises) {
    return collect(promises, (promise, keep, reject) => promise.then(keep, reject));
  }

  static allSettled(promises) {
    return collect(promises, (promise, keep) =>
      promise.then(
        (value) => keep({ status: "fulfilled", value }),
        (reason) => keep({ status: "rejected", reason }),
      ),
    );
  }

  static any(promises) {
    // The first success rejects the collection of all failures.
    return collect(promises, (promise, keep, reject) => promise.then(reject, keep)).then(
      (reasons) => {
        throw new AggregateError(reasons, "all promises were rejected");
      },
      (value) => value,
    );
  }

  static race(promises) {
    return new TurnPromise((resolve, reject) => {
      for (const promise of promises) TurnPromise.resolve(promise).then(resolve, reject);
    });
  }
}

/** Returns a promise of a list with a place for each promise. */
function collect(promises, watch) {
  return new TurnPromise((resolve, reject) => {
    const results = [];
    let waiting = 1;
    const finish = () => {
      waiting -= 1;
      if (waiting === 0) resolve(results);
    };
    let index = 0;
    for (const promise of promises) {
      const at = index;
      index += 1;
      waiting += 1;
      const keep = (result) => {
        results[at] = result;
        finish();
      };
      watch(TurnPromise.resolve(promise), keep, reject);
    }
    finish();
  });
}
