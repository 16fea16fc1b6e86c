// Gives the exports of the core module the names that a component requires, which are not
// AssemblyScript identifiers.
const controller = "vmhost:plugin/controller@1.0.0#";
const names = {
  describe: [controller + "describe"],
  reconcile: [controller + "reconcile"],
  map_changes: [controller + "map-changes"],
  post_return: ["describe", "reconcile", "map-changes"].map((name) => "cabi_post_" + controller + name),
};

/**
 * A transform for the compiler: `asc --transform ./names.mjs`. The compiler adds its `binaryen`.
 */
export default class {
  afterCompile(module) {
    for (const [name, wanted] of Object.entries(names)) {
      const inside = this.binaryen.getExportInfo(module.getExport(name)).value;
      module.removeExport(name);
      for (const each of wanted) module.addFunctionExport(inside, each);
    }
  }
}
