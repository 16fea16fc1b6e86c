// Conversion of custom resources between their versions.

import { isObject, shape } from "./check.js";
import { parse } from "./json.js";

/** Objects of one kind that are to be of another version. */
export class Batch {
  constructor(conversion, requestText) {
    const { desiredAPIVersion, objects } = parse(requestText);
    if (typeof desiredAPIVersion !== "string" || !Array.isArray(objects)) throw new TypeError("the objects to convert cannot be read");
    this.conversion = conversion;
    this.desired = desiredAPIVersion;
    this.objects = objects;
  }

  /** The version that all objects are to have: `v2`. */
  get version() {
    return versionOf(this.desired);
  }

  /** Converts each object that has another version than the desired one. */
  each(convert) {
    return this.objects.map((object) => {
      const from = object.apiVersion ?? "";
      if (from === this.desired) return object;
      let converted;
      try {
        converted = convert(object, versionOf(from)) ?? object;
        if (!isObject(converted)) throw new TypeError(`the conversion returned ${shape(converted)}`);
      } catch (error) {
        const { namespace, name = "" } = object.metadata ?? {};
        const place = namespace ? `${namespace}/${name}` : name;
        throw new Error(`${object.kind} ${place} cannot be converted from ${from} to ${this.desired}: ${error?.message ?? error}`, { cause: error });
      }
      return { ...converted, apiVersion: this.desired };
    });
  }
}

const versionOf = (apiVersion) => apiVersion.slice(apiVersion.lastIndexOf("/") + 1);

/** Returns the objects from a policy, if they are a list of objects; otherwise throws. */
export function checkedObjects(value) {
  if (Array.isArray(value) && value.every(isObject)) return value;
  throw new TypeError(`convert returned ${shape(value)} and no list of objects`);
}
