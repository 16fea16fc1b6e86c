"""CPython and the SDK without a policy: the component that `vmhost dev` compiles once. `load`
brings the policy to an instance.

A policy's modules run in the same order as while `vmhost build` builds them, have the same file
names, and can import the same modules.
"""

import sys

sys.dont_write_bytecode = True

import ast
import linecache
import logging
import os
import traceback
from importlib import import_module
from importlib._bootstrap_external import spec_from_file_location
from importlib.machinery import ModuleSpec, SourceFileLoader

from vmhost_modules import MODULES
from vmhost_plugin import component
from wit_world.exports import scripts

ROOT = "/1"
"""The policy's folder, as componentize-py names it while it builds."""


class Controller:
    """The contract's export. It has a policy from `load` on."""

    policy = None

    def describe(self):
        return self.policy.describe()

    def reconcile(self, request):
        return self.policy.reconcile(request)

    def map_changes(self, request):
        return self.policy.map_changes(request)


class Scripts:
    """The export that the host calls first."""

    def load(self, entry, files):
        folder = _Folder(files)
        opened = _Opened(folder)
        sys.addaudithook(opened.hook)
        sys.meta_path.append(folder)
        error = None
        try:
            __import__(entry)
            # A component that is built runs this after the policy's modules, too: it takes back
            # what they have set up in the logging module.
            exec(_component_code, component.__dict__)
            Controller.policy = component.Controller()
        except BaseException as raised:
            error = raised
        sys.meta_path.remove(folder)
        opened.ends = True
        lacking = folder.lacking(entry) if folder.missed else []
        return scripts.Loaded(folder.used, lacking, opened.names, error and _shown(error))


class _Opened:
    """Files and folders that are opened while the policy is loaded. Python itself opens the
    policy's modules to show a syntax error, and the folders of its path. A hook cannot be removed."""

    def __init__(self, folder):
        self.known = {f"{ROOT}/{path}" for path in folder.files}.union(sys.path)
        self.names = []
        self.ends = False

    def hook(self, event, arguments):
        if self.ends or event not in ("open", "os.listdir", "os.scandir"):
            return
        name = str(arguments[0])
        if not name.startswith("<") and name not in self.known:
            self.names.append(name)


class _Folder:
    """Finds the policy's modules, when Python has found them nowhere else. It is taken away when
    the policy is loaded, since a component that is built has no folders either."""

    def __init__(self, files):
        self.files = {file.path: file.text for file in files}
        self.used = []
        self.missed = []

    def file(self, name):
        """The policy's file of a module, unless Python's library has a module of this name."""
        place = name.replace(".", "/")
        for file in f"{place}/__init__.py", f"{place}.py":
            if file in self.files and name not in _before:
                return file
        return None

    def find_spec(self, name, path=None, target=None):
        file, place = self.file(name), f"{ROOT}/{name.replace('.', '/')}"
        if file is not None:
            self.used.append(file)
            text, path = self.files[file], f"{ROOT}/{file}"
            lines = text.decode(errors="replace").splitlines(keepends=True)
            linecache.cache[path] = (len(text), None, lines, path)
            loader = _Loader(name, path, text)
            folders = [place] if file.endswith("/__init__.py") else None
            return spec_from_file_location(
                name, path, loader=loader, submodule_search_locations=folders
            )
        if name in _before or name in _behind:
            self.missed.append(name)
        elif any(f"{ROOT}/{file}".startswith(f"{place}/") for file in self.files):
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [place]
            return spec
        return None

    def lacking(self, entry):
        """All modules that the policy imports and that this interpreter was built without. The
        first one ends the import; the others are found in the source, so that one more build is
        enough."""
        lacking, pending, seen = set(self.missed), [entry], set()
        while pending:
            name = pending.pop()
            if not name or name in seen:
                continue
            seen.add(name)
            pending.append(name.rpartition(".")[0])
            file = self.file(name)
            if file is not None:
                package = name if file.endswith("/__init__.py") else name.rpartition(".")[0]
                pending.extend(_imports(_parsed(self.files[file]), package))
            elif (name in _before or name in _behind) and name not in sys.modules:
                lacking.add(name)
        return sorted(lacking.difference(MODULES))


class _Loader(SourceFileLoader):
    """Python's own loader, for a file whose content is known."""

    def __init__(self, name, path, text):
        super().__init__(name, path)
        self._text = text

    def get_data(self, path):
        return self._text

    def path_stats(self, path):
        raise OSError(path)  # so that Python looks for no compiled file


def _shown(error):
    """The traceback as Python prints it, without the frame of `load`."""
    trace = error.__traceback__.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def _parsed(text):
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])


def _imports(node, package):
    """The names of the modules that a module may import while it runs: not in its functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) + 1 - child.level] if child.level else []
            name = ".".join([*above, *filter(None, [child.module])])
            yield from (name, *(f"{name}.{alias.name}" for alias in child.names))
        elif not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from _imports(child, package)


def _modules(roots):
    """The names of the modules in folders."""
    for root in roots:
        for folder, _, files in os.walk(root):
            package = os.path.relpath(folder, root).strip(".").replace("/", ".")
            for name, _, extension in (file.partition(".") for file in files):
                if extension.endswith(("py", "so")):
                    yield ".".join(filter(None, [package, "" if name == "__init__" else name]))


# What a build of the policy could import, before and behind the policy's own modules. The folders
# are there while this component is built, and not when it loads a policy.
_own = sys.path.index(ROOT)
_before = frozenset(_modules(sys.path[:_own]))
_behind = frozenset(_modules(sys.path[_own:])) - _before
_component_code = component.__loader__.get_code(component.__name__)

for _name in MODULES:
    try:
        import_module(_name)
    except ImportError:
        pass  # the policy that imports it gets the same error

# As if the SDK's component module had not run yet.
component._keep_sources()
logging.root.handlers.clear()
logging.root.setLevel(logging.WARNING)
