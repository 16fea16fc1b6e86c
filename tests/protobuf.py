"""Makes the embedded server's table of messages, host/apiserver/src/protobuf/messages.json.

It reads the Go types of the modules that tests/kube-apiserver/go.mod pins, of each kind in the
table of built-in kinds, and compares what it finds with Go's own encoder (generated.pb.go). The
form of the table is described in host/apiserver/src/protobuf/table.rs.

    tests/protobuf.py [--check]
"""

import difflib
import json
import re
import subprocess
import sys
import zlib
from pathlib import Path

TESTS = Path(__file__).resolve().parent
SERVER = TESTS.parent / "host/apiserver/src"
TABLE = SERVER / "protobuf/messages.json"

META = "k8s.io/apimachinery/pkg/apis/meta/v1"
CORE = "k8s.io/api/core/v1"
RUNTIME = "k8s.io/apimachinery/pkg/runtime"
DEFINITIONS = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
AGGREGATOR = "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
MODULES = [
    "k8s.io/api",
    "k8s.io/apimachinery",
    "k8s.io/apiextensions-apiserver",
    "k8s.io/kube-aggregator",
]

# Types that have an encoder, or JSON, of their own.
SPECIAL = {
    (META, "Time"): "time",
    (META, "MicroTime"): "microtime",
    (META, "FieldsV1"): "json",
    (RUNTIME, "RawExtension"): "json",
    ("k8s.io/apimachinery/pkg/api/resource", "Quantity"): "quantity",
    ("k8s.io/apimachinery/pkg/util/intstr", "IntOrString"): "intorstring",
    (DEFINITIONS, "JSON"): "json",
    (DEFINITIONS, "JSONSchemaPropsOrBool"): "schemaorbool",
    (DEFINITIONS, "JSONSchemaPropsOrArray"): "schemaorlist",
    (DEFINITIONS, "JSONSchemaPropsOrStringArray"): "schemaorstrings",
}
PLAIN = {
    "string": "string",
    "bool": "bool",
    "int32": "int",
    "int64": "int",
    "float64": "double",
    "[]byte": "bytes",
}
MAPS = {"map:string": "map", "map:bytes": "bytesmap", "map:quantity": "quantitymap"}


class Package:
    """The types of one Go package that have fields in protobuf."""

    def __init__(self, folder):
        self.structs = {}
        self.others = {}
        for file in sorted(folder.glob("*.go")):
            name = file.name
            if name.endswith(("_test.go", "generated.pb.go")) or name.startswith("zz_"):
                continue
            text = file.read_text()
            if text.startswith("//go:build fieldsv1string"):
                continue
            self.read(text)
        encoder = folder / "generated.pb.go"
        self.encoder = encoder.read_text() if encoder.exists() else ""

    def read(self, text):
        imports = {}
        pattern = r'^(?:import\s+|\t)(?:(\w+)\s+)?"(k8s\.io[^"]*)"'
        for alias, path in re.findall(pattern, text, re.M):
            imports[alias or path.rsplit("/", 1)[1]] = path
        for name in re.findall(r"^type (\w+) struct\s*\{\s*\}", text, re.M):
            self.structs[name] = ([], imports)
        for name, body in re.findall(r"^type (\w+) struct \{\n(.*?)^\}", text, re.M | re.S):
            fields = [field(line.strip()) for line in body.split("\n")]
            self.structs[name] = ([found for found in fields if found], imports)
        pattern = r"^type (\w+) (?!struct|interface|func)(?:=\s*)?(\S+)(?:\s*//.*)?$"
        for name, other in re.findall(pattern, text, re.M):
            self.others.setdefault(name, (other, imports))


def field(line):
    """Returns number, Go name (None if embedded), Go type and name in JSON of a field."""
    found = re.match(r"(?:(\w+)\s+)?(\S.*?)\s+`(.*)`", line)
    if line.startswith("//") or not found:
        return None
    name, kind, tags = found.groups()
    protobuf = re.search(r'protobuf:"([^"-][^"]*)"', tags)
    text = re.search(r'json:"([^"]*)"', tags)
    if not protobuf:
        return None
    text = text.group(1).split(",")[0] if text else None
    return int(protobuf.group(1).split(",")[1]), name, kind, text


class Table:
    def __init__(self, folders):
        self.folders = folders
        self.packages = {}
        self.messages = {}
        self.origins = {}

    def package(self, path):
        if path not in self.packages:
            module = next(module for module in MODULES if (path + "/").startswith(module + "/"))
            self.packages[path] = Package(self.folders[module] / path[len(module) + 1:])
        return self.packages[path]

    def kind(self, path, imports, text):
        """Returns whether a Go type is a pointer, and its kind in the table."""
        if text.startswith("*"):
            return True, self.kind(path, imports, text[1:])[1]
        if text in PLAIN:
            return False, PLAIN[text]
        if text.startswith("[]"):
            return False, "[]" + self.kind(path, imports, text[2:])[1]
        of_map = re.match(r"map\[[^\]]*\](.*)$", text)
        if of_map:
            item = "map:" + self.kind(path, imports, of_map.group(1))[1]
            return False, MAPS.get(item, item)
        if "." in text:
            alias, name = text.split(".")
            if imports[alias] == "k8s.io/apimachinery/pkg/types":
                return False, "string"
            return self.kind(imports[alias], None, name)
        if (path, text) in SPECIAL:
            kind = SPECIAL[path, text]
            if kind.startswith("schema"):
                self.add(path, "JSONSchemaProps")
            return False, kind
        if text in self.package(path).others:
            other, imports = self.package(path).others[text]
            pointer, kind = self.kind(path, imports, other)
            return pointer, "strings" if text in ("ExtraValue", "Verbs") else kind
        return False, self.add(path, text)

    def add(self, path, name, key=None):
        """Adds a message and what it consists of, and returns its name in the table."""
        key = key or short(path, name)
        if key in self.messages:
            assert self.origins[key] == (path, name), (key, path, name)
            return key
        self.origins[key] = (path, name)
        fields = self.messages[key] = {}
        found, imports = self.package(path).structs[name]
        for number, go, text, in_json in found:
            pointer, kind = self.kind(path, imports, text)
            assert number not in fields, (key, number)
            is_many = kind.startswith(("[]", "map")) or kind in MAPS.values()
            if go is None and not in_json:
                assert not pointer, (key, text)
                fields[number] = "inline " + kind
            elif is_many or kind in ("strings", "bytes"):
                fields[number] = f"{in_json} {kind}"
            elif kind == "string":
                fields[number] = f"{in_json} string!" if pointer else in_json
            else:
                fields[number] = f"{in_json} {kind}" + ("" if pointer else "?")
            self.compare(key, go or text.split(".")[-1], number, fields[number])
        return key

    def compare(self, key, go, number, written):
        """Compares a field with Go's encoder: when it is written, and under which tag."""
        path, name = self.origins[key]
        encoder = self.package(path).encoder
        pattern = rf"^func \(m \*{name}\) MarshalToSizedBuffer\(.*?\n\}}"
        found = re.search(pattern, encoder, re.M | re.S)
        assert found, (key, "has no encoder")
        when = "always"
        if re.search(rf"^\tif m\.{go} != nil \{{", found.group(0), re.M):
            when = "if set"
        elif re.search(rf"^\tif len\(m\.{go}\) > 0 \{{", found.group(0), re.M):
            when = "if it has items"
        kind = written.split(" ", 1)[1] if " " in written else "string"
        if written.startswith("inline ") or kind == "string" or kind.endswith("?"):
            expected = "always"
        elif kind.startswith(("[]", "map")) or kind in MAPS.values():
            expected = "if it has items"
        else:
            expected = "if set"
        assert when == expected, (key, written, when)
        wire = {"int": 0, "bool": 0, "double": 1}.get(kind.strip("[]?!"), 2)
        tag = number << 3 | wire
        while tag >= 128:
            assert f"dAtA[i] = 0x{tag & 127 | 128:x}" in found.group(0), (key, written)
            tag >>= 7
        assert f"dAtA[i] = 0x{tag:x}" in found.group(0), (key, written)


def short(path, name):
    if path in (META, CORE):
        return name
    group, version = path.split("/")[-2:]
    return f"{group}.{name}" if version == "v1" else f"{group}/{version}.{name}"


def package_of(group, version):
    if group == "apiextensions.k8s.io":
        return DEFINITIONS
    if group == "apiregistration.k8s.io":
        return AGGREGATOR
    return f"k8s.io/api/{group.split('.')[0] or 'core'}/{version}"


def folders_of_modules():
    place = {"cwd": TESTS / "kube-apiserver", "text": True}
    # Nothing is fetched if they are there.
    subprocess.run(["go", "mod", "download", *MODULES], check=True, **place)
    command = ["go", "list", "-m", "-f", "{{.Path}} {{.Dir}}", *MODULES]
    listed = subprocess.check_output(command, **place)
    found = dict(line.split(" ", 1) for line in listed.splitlines())
    return {module: Path(folder) for module, folder in found.items()}


def make():
    table = Table(folders_of_modules())
    kinds = set()
    for row in json.loads(zlib.decompress((SERVER / "builtin/kinds.zz").read_bytes())):
        for one in [row, *row.get("subresources", [])]:
            if not one["kind"].endswith("Options"):
                kinds.add((one["group"], one["version"], one["kind"]))
    for group, version, kind in sorted(kinds):
        table.add(package_of(group, version), kind, f"{group}/{version} {kind}".lstrip("/"))
    for kind in ("Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"):
        table.add(META, kind, f"v1 {kind}")
    table.add(META, "PartialObjectMetadata", "meta.k8s.io/v1 PartialObjectMetadata")
    discovery = "APIGroupDiscoveryList"
    table.add("k8s.io/api/apidiscovery/v2", discovery, f"apidiscovery.k8s.io/v2 {discovery}")
    table.add(META, "DeleteOptions")
    table.add(META, "ListMeta")
    lines = []
    for key, fields in sorted(table.messages.items()):
        fields = {str(number): fields[number] for number in sorted(fields)}
        lines.append(f"  {json.dumps(key)}: {json.dumps(fields)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main():
    made, old = make(), TABLE.read_text()
    lines = old.splitlines(), made.splitlines()
    for line in difflib.unified_diff(*lines, "checked in", "made", n=0, lineterm=""):
        print(line)
    if "--check" in sys.argv:
        sys.exit(made != old)
    TABLE.write_text(made)


if __name__ == "__main__":
    main()
