/** Objects of one kind that are to be of another version. */
export interface Batch {
  /** The name of the conversion in the description that this call is for. */
  readonly conversion: string;
  /** The `apiVersion` that all objects are to have: `cloud.waibizi.com/v2`. */
  readonly desired: string;
  /** Its version: `v2`. */
  readonly version: string;
  /** The objects, as they are stored or as a client sent them. */
  readonly objects: ConvertedObject[];
  /**
   * Converts each object: `convert` gets the object and the version that it has, and changes it or
   * returns another one. `apiVersion` is set afterwards. Objects that have the desired version stay
   * as they are. An error names the object.
   */
  each(convert: (object: any, from: string) => ConvertedObject | void): ConvertedObject[];
}

export type ConvertedObject = Record<string, any>;
