"""The files around functions that are read as one: who uses a name of another file, and what one file has to borrow of another."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from towermigrate.recognize.python_scopes import Definition, Module, Unjoined, bound_by
from towermigrate.recognize.source import Tree

Origin = tuple[str | None, str]
"""The file of the tree, None for a library's, and the name there: none for the module itself."""
_ITSELF = ""

_PACKAGE = "/__init__.py"


class Files:
    """The files of a tree as Python reads them; `path` is the one that functions of others are read in.

    `joined` are the files in which functions were joined before.
    """

    def __init__(self, tree: Tree, path: str, joined: Collection[str] = ()) -> None:
        self.joined = joined
        self.tree = tree
        self.path = path
        self.modules: dict[str, Module] = {}
        self.lent_from: set[str] = set()

    def module(self, path: str) -> Module:
        if path not in self.modules:
            text, joined = self.tree.sources[path], path in self.joined
            known: dict[tuple[str, str, bool], Module] = self.tree.common.modules
            if (path, text, joined) not in known:
                known[path, text, joined] = Module(path, text, joined=joined)
            self.modules[path] = known[path, text, joined]
        return self.modules[path]

    def sure_import(self, path: str, name: str) -> None:
        """Raise where an import of a file binds a name in some cases only, or for a part of it, or is one of several."""
        module = self.module(path)
        inside = [
            alias
            for each in module.imports
            for alias in each.names
            if (alias.asname or alias.name.partition(".")[0]) == name
        ]
        tops = [
            alias
            for each in module.tree.body
            if isinstance(each, ast.Import | ast.ImportFrom)
            for alias in each.names
        ]
        if len(inside) > 1 and len({ast.dump(each) for each in inside}) > 1:
            raise Unjoined
        if any(not any(each is top for top in tops) for each in inside):
            raise Unjoined

    def told_elsewhere(self, path: str, name: str, uses: Collection[ast.AST]) -> bool:
        """Whether a file of the tree may reach a function by another way than those uses: handed on by a module, replaced, by a text.

        Only files are asked that import its file, or one that does.
        """
        reached, waiting = {path}, [path]
        while waiting:
            users = self.tree.users.get(waiting.pop(), set()) & self.tree.sources.keys()
            waiting += users - reached
            reached |= users
        known = {id(each) for each in uses}
        for user in sorted(reached):
            if not re.search(rf"\b{name}\b", self.tree.sources[user]):
                continue
            module = self.module(user)
            called = {id(each.func) for each in module.nodes if isinstance(each, ast.Call)}
            known |= _listed_for_stars(module)
            for each in module.nodes:
                match each:
                    case ast.Attribute(value=ast.Name(id=of), ctx=ast.Load()) if (
                        each.attr == name and self._is_foreign(user, of)
                    ):
                        pass  # `tf.train` is no function of the tree
                    case ast.Attribute(attr=attr) if attr == name and id(each) not in known:
                        # `run` is what sessions have.
                        if name != "run" or not isinstance(each.ctx, ast.Load):
                            return True
                        if id(each) not in called or self._is_module(user, each.value):
                            return True
                    case ast.Constant(value=value) if value == name and id(each) not in known:
                        return True
                    case ast.ImportFrom(module=of, names=names, level=level) if user != path:
                        dotted = "." * level + (of or "")
                        direct = self.tree.module_path(user, dotted) == path
                        if not direct and any(one.name == name for one in names):
                            whole = f"{dotted}{'' if dotted.endswith('.') else '.'}{name}"
                            direct = self._origin(user, whole) == (path, name)
                        if any(one.name == name for one in names) and not direct:
                            if self.tree.module_path(user, dotted) in reached:
                                return True
        return False

    def _is_foreign(self, path: str, name: str) -> bool:
        """Whether a name of a file is bound by nothing but the import of a module that is no file of the tree."""
        file = self.tree.file(path)
        origin = None if file is None else file.imports.get(name)
        if origin is None or origin.partition(".")[0] not in ("tensorflow", "numpy"):
            return False
        if self.tree.module_path(path, origin.partition(".")[0]) is not None:
            return False
        module = self.module(path)
        given = (n for n in module.nodes if isinstance(n, ast.arg) and n.arg == name)
        return all(isinstance(n.ctx, ast.Load) for n in module.uses(name)) and not any(given)

    def _is_module(self, path: str, node: ast.expr) -> bool:
        file = self.tree.file(path)
        return isinstance(node, ast.Name) and file is not None and node.id in file.imports

    def uses_in(self, user: str, path: str, name: str) -> list[ast.expr]:
        """Where a file reads a function of another one; raises where that cannot be told."""
        if user == path:
            return list(self.module(path).uses(name))
        file = self.tree.file(user)
        if file is None or name not in file.text:
            return []
        module = self.module(user)
        last = re.sub(r"(/__init__)?\.py$", "", path).rsplit("/", 1)[-1]
        if not module.uses_of_import(last, name):
            return []
        if file.star_imports:
            raise Unjoined
        called = {
            local
            for local, origin in file.imports.items()
            if self._origin(user, origin) == (path, name)
        }
        modules = {
            local
            for local, origin in file.imports.items()
            if self.tree.module_path(user, origin) == path
        }
        for each in called | modules:
            self.sure_import(user, each)
        found: list[ast.expr] = []
        for node in module.nodes:
            if isinstance(node, ast.Name) and node.id in called:
                found.append(node)
            elif isinstance(node, ast.Attribute) and node.attr == name:
                root, _, rest = ast.unparse(node.value).partition(".")
                whole = f"{file.imports.get(root, root)}.{rest}"
                if root in modules and not rest or self.tree.module_path(user, whole) == path:
                    found.append(node)
                elif root in file.imports and self._is_handed_on(user, root, whole, path, name):
                    found.append(node)
        return found

    def _origin(self, user: str, origin: str, depth: int = 4) -> Origin:
        """The file of the tree, and the name in it, that an imported name comes from, through files that only hand it on."""
        of_itself = self.tree.module_path(user, origin)
        if of_itself is not None:
            return of_itself, _ITSELF
        module, name = _apart(origin)
        path = self.tree.module_path(user, module) if module else None
        further = None if path is None or depth == 0 else self._handed_on(path, name)
        if path is None or further is None:
            return path, name
        return self._origin(path, further, depth - 1)

    def _is_handed_on(self, user: str, root: str, whole: str, path: str, name: str) -> bool:
        """Whether `whole.name` of a file is a function of another one, which a package that it imports hands on."""
        if self.tree.module_path(user, whole) is None:
            return False
        if self._origin(user, f"{whole}.{name}") != (path, name):
            return False
        self.sure_import(user, root)
        return True

    def _handed_on(self, path: str, name: str) -> str | None:
        """Where a file has a name from that it binds by one import only, as a package does of what its modules define."""
        there = self.tree.file(path)
        origin = None if there is None or there.star_imports else there.imports.get(name)
        if origin is None or self.is_set_elsewhere(name):
            return None
        try:
            module = self.module(path)
            self.sure_import(path, name)
        except Unjoined:
            return None
        once = sum(name in bound_by(each) for each in module.tree.body) == 1
        return origin if once and not module.declares_global(name) else None

    def lent(self, function: Definition, renames: Mapping[str, str]) -> list[str]:
        """Imports that give the file what a function of another file reads of its own module."""
        lent: list[str] = []
        for name, origin, theirs in self.borrowed(function):
            local = renames.get(name, name)
            if local != name or not self.has(name, origin, theirs):
                lent.append(self.import_of(name, local, origin, theirs, function.path))
                if theirs[0] is not None:
                    self.lent_from.add(theirs[0])
        return lent

    def borrowed(self, function: Definition) -> list[tuple[str, str | None, Origin]]:
        """Names of its own module that a function of another file reads: how it imports them, where they are made."""
        if function.path == self.path:
            return []
        there, module = self.tree.file(function.path), self.module(function.path)
        if there is None or there.star_imports:
            raise Unjoined
        found: list[tuple[str, str | None, Origin]] = []
        for name in sorted(function.globals):
            times = sum(name in bound_by(each) for each in module.tree.body)
            if not times:  # a built-in name, which it must be for the file as well
                if name in self.caller_names(self.module(self.path)):
                    raise Unjoined
                continue
            if times > 1 or module.declares_global(name):
                raise Unjoined
            origin = there.imports.get(name)
            if origin is not None:
                self.sure_import(function.path, name)
            own: Origin = (function.path, name)
            theirs = own if origin is None else self._origin(function.path, origin)
            if theirs[0] is not None and self.is_set_elsewhere(theirs[1]):
                raise Unjoined  # an import would give what it was at first
            found.append((name, origin, theirs))
        return found

    def is_set_elsewhere(self, name: str) -> bool:
        """Whether a name of a module may be set from outside of it: `graph.NUM_GPUS = 1`, or by its text."""
        attribute = re.compile(rf"(?<!\bself)(?<!\bcls)\.{name}\s*(?:[-+*/|&^%@]|//|\*\*)?=(?!=)")
        by_text = re.compile(rf"['\"]{name}['\"]|\b{name}=")
        return any(
            attribute.search(text)
            or by_text.search(text)
            and re.search(r"\bsetattr\(|__dict__|\bvars\(", text)
            for text in self.tree.sources.values()
            if name in text
        )

    def has(self, name: str, origin: str | None, theirs: Origin) -> bool:
        """Whether the file has the same by this name; raises where it has something else."""
        here = self.tree.file(self.path)
        known = None if here is None else here.imports.get(name)
        if known is None:
            if name in self.caller_names(self.module(self.path)):
                raise Unjoined
            return False
        given = self._origin(self.path, known)
        if given != theirs or given[0] is None and known != origin:
            raise Unjoined
        return True

    @staticmethod
    def caller_names(module: Module) -> set[str]:
        return {name for each in module.tree.body for name in bound_by(each)}

    def import_of(
        self, name: str, local: str, origin: str | None, theirs: Origin, user: str = ""
    ) -> str:
        """The import that gives the file a name, as it imports from there already or as `user`, a file beside it, does."""
        if theirs[0] is None:  # of a library
            if origin is None or origin.startswith("."):
                raise Unjoined
            if user and self.tree.module_path(user, origin) != self.tree.module_path(
                self.path, origin
            ):
                raise Unjoined  # a file of the tree, or another one, as each of them looks for it
            base, _, last = origin.rpartition(".")
            if not base:
                return f"import {origin}" + ("" if origin == local else f" as {local}")
            return f"from {base} import {last}" + ("" if last == local else f" as {local}")
        known = self._names_of(theirs[0])
        if not known:
            module = "" if origin is None else origin
            if theirs[1] != _ITSELF:
                module = _apart(module)[0]
            known = self._names_beside(user, module)
        for each in known:
            if self.tree.module_path(self.path, each) == theirs[0]:
                base, name = (each, theirs[1]) if theirs[1] != _ITSELF else _apart(each)
                same = "" if name == local else f" as {local}"
                return f"from {base} import {name}{same}" if base else f"import {name}{same}"
        for each in known if origin is not None else ():  # as a package hands it on
            name = _apart(origin or "")[1]
            if self._origin(self.path, f"{each}.{name}") == theirs:
                return f"from {each} import {name}" + ("" if name == local else f" as {local}")
        raise Unjoined

    def _names_of(self, path: str) -> list[str]:
        """The names by which the file imports another one."""
        names: list[str] = []
        for each in self.module(self.path).tree.body:
            if isinstance(each, ast.ImportFrom):
                imported = "." * each.level + (each.module or "")
                names.append(imported)
                dot = "" if imported.endswith(".") else "."
                names += [f"{imported}{dot}{alias.name}" for alias in each.names]
            elif isinstance(each, ast.Import):
                names += [alias.name for alias in each.names]
        found = {name: self.tree.module_path(self.path, name) for name in names}
        inside = [
            f"{name}.{path[len(there) - len(_PACKAGE) + 1 : -3].replace('/', '.')}"
            for name, there in found.items()
            if there is not None
            and there.endswith(_PACKAGE)
            and path != there
            and path.startswith(there[: len(there) - len(_PACKAGE) + 1])
            and not name.endswith(".")
        ]  # what a package, which is imported itself, has in it
        found |= {name: self.tree.module_path(self.path, name) for name in inside}
        return [name for name, there in found.items() if there == path]

    def _names_beside(self, user: str, module: str) -> list[str]:
        """What the file calls a module that `user`, a file that it imports, calls by a name: one module must not be two."""
        if not module:
            return []
        if PurePosixPath(user).parent == PurePosixPath(self.path).parent:
            return [module]
        level = len(module) - len(module.lstrip("."))
        if not level:
            return [module]
        found: list[str] = []
        for name in self._names_of(user):
            package = name if user.endswith("/__init__.py") else _above(name)
            for _ in range(level - 1):
                package = _above(package)
            rest = module[level:]
            if package:
                dot = "" if package.endswith(".") or not rest else "."
                found.append(f"{package}{dot}{rest}")
        return found


def _listed_for_stars(module: Module) -> set[int]:
    """The texts of `__all__`, by which nobody is reached but by a star."""
    return {
        id(text)
        for each in module.tree.body
        if isinstance(each, ast.Assign)
        and [ast.unparse(one) for one in each.targets] == ["__all__"]
        for text in ast.walk(each.value)
        if isinstance(text, ast.Constant)
    }


def _apart(name: str) -> tuple[str, str]:
    """The module that a name is imported from, with its dots, and the name there: of `.a` they are `.` and `a`."""
    module, _, last = name.rpartition(".")
    if not module.strip("."):
        module = name[: len(name) - len(last)]
    return module, last


def _above(name: str) -> str:
    """The package that a module is in, empty where it is in none: of `a.b` it is `a`, of `.a` it is `.`, of `.` it is `..`."""
    if name.strip("."):
        return _apart(name)[0]
    return f"{name}." if name else ""
