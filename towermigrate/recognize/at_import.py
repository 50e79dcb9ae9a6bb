"""Whether a file only defines things where it is imported: an import that nothing reads may go then, and with it what it did."""

from __future__ import annotations

import ast
import sys

from towermigrate.recognize.source import Tree

_PLAIN_CALLS = frozenset(
    "range xrange len int float str bool list tuple dict set frozenset sorted zip max min sum round "
    "abs object slice namedtuple collections.namedtuple OrderedDict collections.OrderedDict "
    "logging.getLogger re.compile os.path.join os.path.dirname os.path.abspath os.path.expanduser "
    "os.getcwd os.environ.get np.array np.zeros np.ones np.arange np.float32 np.int32".split()
)
"""What only gives a value."""
_LIBRARIES = sys.stdlib_module_names | frozenset(
    "numpy tensorflow six scipy PIL cv2 matplotlib sklearn skimage pandas tqdm h5py yaml absl future nltk tf_slim "
    "tf_keras keras gym requests imageio tensorflow_probability tensorflow_hub horovod mpi4py".split()
)
"""What no file of the tree is: files that import nothing are not read, so that no other name is known to be a library's."""
_ONCE = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)


def only_defines(tree: Tree, importer: str, module: str) -> bool:
    """Whether importing a module, as a file names it, does no more than to give names a meaning.

    What a library does when it is imported is no matter: the programs import it, or need it not.

    Args:
        module: its name, with the dots that stand in front of it.
    """
    return _imports(tree, importer, module, set())


def _defines(tree: Tree, path: str, seen: set[str]) -> bool:
    if path in seen:
        return True
    seen.add(path)
    try:
        module = ast.parse(tree.sources[path])
    except (SyntaxError, ValueError, RecursionError):
        return False
    return all(_is_plain(tree, path, each, seen) for each in module.body)


def _is_plain(tree: Tree, path: str, statement: ast.stmt, seen: set[str]) -> bool:
    def inner(body: list[ast.stmt]) -> bool:
        return all(_is_plain(tree, path, each, seen) for each in body)

    match statement:
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            return True
        case ast.Import(names=names):
            return all(_imports(tree, path, each.name, seen) for each in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            whole = "." * level + (module or "")
            return all(
                _imports(tree, path, asked, seen)
                for each in names
                for asked in parts_of(whole, each.name)
            )
        case ast.FunctionDef(args=spec, decorator_list=decorators):
            defaults = [*spec.defaults, *(each for each in spec.kw_defaults if each is not None)]
            return all(map(_gives, [*defaults, *decorators]))
        case ast.ClassDef(bases=bases, decorator_list=decorators, body=body, keywords=[]):
            return all(map(_gives, [*bases, *decorators])) and inner(body)
        case ast.Assign(targets=targets, value=value):
            return all(map(_is_name, targets)) and _gives(value)
        case ast.AnnAssign(target=ast.Name(), value=value):
            return value is None or _gives(value)
        case ast.If(test=test, body=body, orelse=orelse):
            if ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__"):
                return inner(orelse)
            return _gives(test) and inner(body) and inner(orelse)
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=finalbody):
            return inner([*body, *orelse, *finalbody]) and all(inner(h.body) for h in handlers)
    return False


def parts_of(module: str, name: str) -> list[str]:
    """What `from module import name` imports, by what the importing file calls it: the name may be a module's too."""
    dot = "" if module.endswith(".") else "."
    return [*([module] if module.strip(".") else []), f"{module}{dot}{name}"]


def _imports(tree: Tree, path: str, module: str, seen: set[str]) -> bool:
    dots = len(module) - len(module.lstrip("."))
    parts = module.lstrip(".").split(".")
    found = [
        tree.module_path(path, "." * dots + ".".join(parts[:n])) for n in range(1, len(parts) + 1)
    ]
    if not any(found):
        return not dots and parts[0] in _LIBRARIES
    return all(each is None or _defines(tree, each, seen) for each in found)


def _is_name(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_is_name, target.elts))
    return isinstance(target, ast.Name)


def _gives(value: ast.expr) -> bool:
    """Whether an expression only gives a value, as far as its text tells."""
    for each in ast.walk(value):
        if isinstance(each, _ONCE):
            return False
        if isinstance(each, ast.Call) and ast.unparse(each.func) not in _PLAIN_CALLS:
            return False
    return True


__all__ = ["only_defines", "parts_of"]
