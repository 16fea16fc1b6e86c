"""CPython and the SDK without a policy: the component that `vmhost dev` compiles once. `load`
brings the policy to an instance.

A policy's modules run in the same order as in `vmhost build`, have the same file names, and can
import the same modules.
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
"""The policy's folder, by the name that componentize-py gives it during a build."""


class Controller:
    """The export of the contract. It has a policy after `load`."""

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
            opened.ends = True  # what follows is the SDK's
            # A built component runs this code after the policy's modules, too. It undoes their
            # changes to the logging module.
            exec(_component_code, component.__dict__)
            Controller.policy = component.Controller()
        except BaseException as raised:
            error = raised
        sys.meta_path.remove(folder)
        opened.ends = True
        lacking = folder.lacking(entry) if folder.missed else []
        return scripts.Loaded(folder.used, lacking, opened.names, error and _shown(error))


class _Opened:
    """Records the files and folders that are opened while the policy loads, except those that
    Python itself opens: the policy's modules (to show a syntax error) and the folders of its path.
    Stops at `ends`, because an audit hook cannot be removed."""

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
    """Finds the policy's modules, after all other finders. It is removed when the policy is loaded,
    because a built component has no folders either."""

    def __init__(self, files):
        self.files = {file.path: file.text for file in files}
        self.used = []
        self.missed = []

    def file(self, name):
        """Returns the policy's file of a module, unless Python's standard library has a module of
        that name."""
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
        """Returns all modules that the policy imports and that this interpreter was built without.
        The first one ends the import; the others are found in the source, so that a single further
        build is enough."""
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
    """Python's own loader, for a file with known content."""

    def __init__(self, name, path, text):
        super().__init__(name, path)
        self._text = text

    def get_data(self, path):
        return self._text

    def path_stats(self, path):
        raise OSError(path)  # Python then looks for no compiled file


def _shown(error):
    """Returns the traceback as Python prints it, without the frame of `load`."""
    trace = error.__traceback__.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def _parsed(text):
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])


def _imports(node, package):
    """Yields the names of the modules that a module may import at its top level, outside functions.
    """
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
    """Yields the names of the modules in folders."""
    for root in roots:
        for folder, _, files in os.walk(root):
            package = os.path.relpath(folder, root).strip(".").replace("/", ".")
            for name, _, extension in (file.partition(".") for file in files):
                if extension.endswith(("py", "so")):
                    yield ".".join(filter(None, [package, "" if name == "__init__" else name]))


# The modules that a build of the policy could import, before and behind the policy's own modules.
# The folders exist while this component is built, but not when it loads a policy.
_own = sys.path.index(ROOT)
_before = frozenset(_modules(sys.path[:_own]))
_behind = frozenset(_modules(sys.path[_own:])) - _before
_component_code = component.__loader__.get_code(component.__name__)

for _name in MODULES:
    try:
        import_module(_name)
    except ImportError:
        pass  # the policy that imports it gets the same error

# Restore the state from before the SDK's component module ran.
component._keep_sources()
logging.root.handlers.clear()
logging.root.setLevel(logging.WARNING)
