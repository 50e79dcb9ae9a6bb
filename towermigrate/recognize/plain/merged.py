"""`tf.summary.merge_all()` behind towers that make summaries: a merge of what each tower made, and of the others by their names."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator

from towermigrate.recognize.plain.changes import (
    OF_TOWERS,
    Change,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
)
from towermigrate.recognize.plain.collected import loops_of_towers
from towermigrate.recognize.plain.first_summaries import first_blocks, without_condition
from towermigrate.recognize.plain.summary_loops import listed_summaries
from towermigrate.recognize.plain.told import outermost

_SILENT = {
    *sys.stdlib_module_names,
    *"attr colorama cv2 easydict gensim h5py hdf5storage imageio joblib librosa lmdb lxml matplotlib medpy msgpack nibabel "
    "nltk numba numpy pandas PIL psutil pycocotools pydicom requests scipy shapely SimpleITK simplejson six skimage "
    "sklearn soundfile spacy tables tensorflow termcolor tqdm ujson yaml".split(),
}
"""Packages that make nothing in a graph of TensorFlow unasked."""
_KINDS = frozenset({"scalar", "histogram", "image", "audio", "text"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_OF_TOWER = "tf.summary.merge(tf.get_collection(tf.GraphKeys.SUMMARIES, {}))"
_QUEUES = re.compile(
    r"_producer\(|\btrain\.\w*batch\w*\(|prefetch_queue"
    # Something is added to a collection that may be that of the summaries.
    r"|add_to_collections?\(\s*(?!['\"](?!summaries['\"])|tf\.GraphKeys\.(?!SUMMARIES))"
)
_OTHERWISE = re.compile(
    # A summary that is not written `tf.summary.scalar(…)`, or that is made by what TensorFlow has for it elsewhere.
    r"(?<!\btf\.)\bsummary\.(?:scalar|histogram|image|audio|text|tensor_summary)\b|\btf\.summary\b(?!\.)"
    r"|\btf\.summary\.\w+\b(?!\()|tensorflow\.\S*summary|summarize_\w+\(|optimize_loss\(|add_gradients_summaries"
)
_MAY_MAKE = re.compile(
    r"summar|SUMMARIES|_producer\b|\btrain\.\w*batch|_batch_join\b|bucket|[qQ]ueue|\.training\b|\.learning\b|\.learn\b|import learn\b|provider"
    r"|parallel_reader|[eE]stimator|keras|optimize_loss|add_to_collection|import_meta_graph"
    r"|\b(?:getattr|exec|eval|importlib|__import__)\b|\bimport \*"
)
"""What a file that is imported may make summaries by, and other packages with it."""
_QUIET = frozenset("tf np numpy os sys time math random re json datetime argparse".split())
"""Modules that make no summaries unasked; TensorFlow's queues are looked for by name."""


def merged_summaries(file: PlainFile) -> list[Change]:
    """The one `merged = tf.summary.merge_all()` of a file, where every tower is sure to make a summary in a name scope of its own."""
    if file.text.count("merge_all(") != 1 or "tf.summary.merge_all()" not in file.text:
        return []
    for where, scope, loop in loops_of_towers(file):
        for body, always in blocks(scope):
            for each in body if always else ():
                match each:
                    case ast.Assign(targets=[ast.Name()], value=ast.Call() as call):
                        behind = each.lineno > (loop.end_lineno or loop.lineno)
                        if behind and ast.unparse(call) == "tf.summary.merge_all()":
                            return _Merge(file, scope, loop, each, call, where).changes()
    return []


def _uncommented(text: str) -> str:
    return re.sub(r"^[ \t]*#.*$", "", text, flags=re.MULTILINE)


class _Merge:
    def __init__(
        self,
        file: PlainFile,
        scope: Scope,
        loop: ast.For,
        statement: ast.Assign,
        call: ast.Call,
        where: str,
    ) -> None:
        self.file, self.scope, self.loop, self.where = file, scope, loop, where
        self.statement, self.call = statement, call
        # Of summaries that only the first tower makes, others make none.
        self.firsts = first_blocks(file, scope, loop, _is_summary)
        # Functions of the file that may make summaries, and whether they are sure to.
        self.making = {
            each.name: any(_makes(one) for one in self._always(each.body))
            for each in _makers(file, scope)
        }

    def changes(self) -> list[Change]:
        file, where = self.file, self.where
        block = self._scope_of_tower()
        others = self._others()
        if block is None or others is None or self._may_hide_others():
            return []
        item = next(each for each in block.items if _is_name_scope(each.context_expr))
        inside = {id(each) for each in ast.walk(block)}
        if any(id(each) not in inside for each in self._made_in(self.loop)):
            return []
        first, last = outermost(self.scope, self.loop), block.body[-1]
        margins = file.alone(first), file.alone(block.body[0])
        if None in margins or file.alone(last) is None or block.body[0].lineno == block.lineno:
            return []
        margin = file.alone(self.statement)
        if margin is None or file.commented(*file.span(self.call)):
            return []
        found: list[Change] = []
        names = file.fresh("tower_summaries")
        if isinstance(item.optional_vars, ast.Name):
            prefix = item.optional_vars.id
        elif item.optional_vars is None:
            prefix = file.free(self.scope, "scope", "tower_scope")
            end = file.end(item.context_expr)
            found.append(Change(end, end, (f" as {prefix}",), where))
        else:
            return []
        begin = file.starts[first.lineno - 1]
        found.append(Change(begin, begin, (f"{margins[0]}{names} = []\n",), where))
        end = file.block.end_of_line(last)
        made = f"\n{margins[1]}{names}.append({_OF_TOWER.format(prefix)})"
        found.append(Change(end, end, (made,), where))
        parts: list[list[str]] = [[], []]
        moved: list[Part] = []
        for each in others:
            late = each.lineno > self.loop.lineno
            if isinstance(each, ast.Assign):
                star = "*" * isinstance(each.value, ast.ListComp)
                parts[late].append(star + ast.unparse(each.targets[0]))
                continue
            name = file.fresh(_name(each.value))
            parts[late].append(name)
            if late:
                start = file.start(each)
                found.append(Change(start, start, (f"{name} = ",), where))
            elif self._may_wait(each):  # what all towers share has nothing to do with them
                moved += [f"{margin}{name} = ", file.span(each), "\n"]
                found.append(Change(*file.without(each), (), where))
            else:
                return []
        lists = [f"[{', '.join(each)}]" if each else "" for each in parts]
        text = " + ".join(each for each in (lists[0], names, lists[1]) if each)
        if self.firsts:
            if not self._only_firsts():
                return []
            text = f"[{', '.join([*parts[0], f'{names}[0]', *parts[1]])}]"
            for first_block in self.firsts:
                change = without_condition(file, first_block)
                if change is None:
                    return []
                found.append(Change(*change, self._outermost(first_block)))
        merged: tuple[Part, ...] = (f"tf.summary.merge({text})",)
        if moved:
            begin = file.starts[self.statement.lineno - 1]
            found.append(Change(begin, begin, tuple(moved), where))
        return [*found, Change(*file.span(self.call), merged, where)]

    def _only_firsts(self) -> bool:
        """Whether all summaries of the towers are those of the first one; functions of other files may make some."""
        if any("summar" in text for text in self.file.imported()):
            return False
        first = {id(each) for block in self.firsts for each in ast.walk(block)}
        functions = [
            each
            for each in self.file.tree.body
            if isinstance(each, ast.FunctionDef) and each.name in self.making
        ]
        return all(
            id(each) in first
            for part in (self.loop, *functions)
            for each in ast.walk(part)
            if _is_summary(each)
        )

    def _outermost(self, node: ast.AST) -> str:
        for where, scope in self.file.scopes:
            if scope in self.file.tree.body and any(each is node for each in ast.walk(scope)):
                return where if scope is self.scope else OF_TOWERS + where
        return self.where

    def _always(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        """The statements that run, in the first tower."""
        for each in body:
            yield each
            if isinstance(each, ast.With) or any(each is one for one in self.firsts):
                yield from self._always(each.body)  # type: ignore[attr-defined]

    def _may_wait(self, statement: ast.Expr) -> bool:
        """Whether a summary that is made in front of the towers says the same behind them."""
        names = {each.id for each in ast.walk(statement) if isinstance(each, ast.Name)}
        calls = [each for each in ast.walk(statement.value) if isinstance(each, ast.Call)]
        once = all(
            bindings(self.scope, each) <= 1 and each not in self.file.shared_between_functions
            for each in names
        )
        return once and len(calls) == 1 and "\n" not in self.file.of(statement)

    def _scope_of_tower(self) -> ast.With | None:
        """The name scope that each tower is built in, where it is sure to make a summary there."""
        if len(self.loop.body) != 1:
            return None
        each = self.loop.body[0]
        while isinstance(each, ast.With):
            if any(_is_name_scope(item.context_expr) for item in each.items):
                sure = any(self._is_sure(one) for one in self._always(each.body))
                return each if sure else None
            if len(each.body) != 1:
                return None
            each = each.body[0]
        return None

    def _may_hide_others(self) -> bool:
        """Whether something else may make summaries: queues of inputs do, and so may functions of other files and modules."""
        if _QUEUES.search(_uncommented(self.file.text)) or self._may_be_made_unseen():
            return True
        inside = {id(each) for each in ast.walk(self.loop)}
        quiet = all(self._is_quiet(text) for text in self.file.imported())
        loud: set[str] = set()
        for each in self.file.nodes:
            if isinstance(each, ast.Import | ast.ImportFrom):
                base = (
                    "." * each.level + (each.module or "")
                    if isinstance(each, ast.ImportFrom)
                    else ""
                )
                for alias in each.names:
                    module = base or alias.name
                    root = (alias.asname or alias.name).partition(".")[0]
                    if root in _QUIET or quiet and self._is_own(module):
                        continue
                    loud.add(root)
        return any(
            isinstance(each, ast.Call)
            and id(each) not in inside
            and ast.unparse(each.func).partition(".")[0] in loud
            for each in ast.walk(self.scope)
        )

    def _is_quiet(self, text: str) -> bool:
        """Whether a file of the tree makes no summaries, and imports nothing that may."""
        try:
            nodes = list(ast.walk(ast.parse(text)))
        except SyntaxError:
            return False
        modules = [one.name for each in nodes if isinstance(each, ast.Import) for one in each.names]
        modules += [
            "." * each.level + (each.module or "")
            for each in nodes
            if isinstance(each, ast.ImportFrom)
        ]
        return not _MAY_MAKE.search(_uncommented(text)) and all(
            module.partition(".")[0] in _SILENT or self._is_own(module) for module in modules
        )

    def _is_own(self, module: str) -> bool:
        """Whether a module is a file of the tree."""
        return self.file.module_path(module) is not None

    def _may_be_made_unseen(self) -> bool:
        """Whether something makes summaries that is no function of the file by its name: a method, a lambda, a `partial`."""
        file = self.file
        if _OTHERWISE.search(file.text):
            return True
        functions = [each for each in file.tree.body if isinstance(each, ast.FunctionDef)]
        called = {id(each.func) for each in file.nodes if isinstance(each, ast.Call)}
        named = (each for each in file.nodes if isinstance(each, ast.Name))
        if any(each.id in self.making and id(each) not in called for each in named):
            return True
        inside = (each for top in functions for each in ast.walk(top) if each is not top)
        hiding = [
            *(each for each in file.tree.body if each not in functions),
            *(each for each in inside if isinstance(each, _FUNCTIONS)),
        ]
        own = {id(each) for each in ast.walk(self.scope)} if self.scope is file.tree else set()
        return any(
            _makes_one(each, self.making)
            for each in hiding
            if id(each) not in own or isinstance(each, _FUNCTIONS)
        )

    def _is_sure(self, statement: ast.stmt) -> bool:
        if _makes(statement):
            return True
        value = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
        called = value.func if isinstance(value, ast.Call) else None
        return isinstance(called, ast.Name) and self.making.get(called.id, False)

    def _made_in(self, node: ast.AST) -> Iterator[ast.Call]:
        """What makes summaries in a part of the program, or may."""
        for each in ast.walk(node):
            if isinstance(each, ast.Call):
                of_file = isinstance(each.func, ast.Name) and each.func.id in self.making
                if _is_summary(each) or of_file:
                    yield each

    def _others(self) -> list[ast.Expr | ast.Assign] | None:
        """The statements of the scope that make summaries before the merge, in order; None where others may."""
        inside = {id(each) for each in ast.walk(self.loop)}
        known: dict[int, ast.Expr | ast.Assign] = {}
        for body, always in blocks(self.scope):
            for each in body if always else ():
                if isinstance(each, ast.Expr | ast.Assign) and _makes(each):
                    known[id(each.value)] = each
                elif isinstance(each, ast.Assign) and isinstance(each.value, ast.ListComp):
                    known |= {id(one): each for one in listed_summaries(each.value)}
        found: list[ast.Expr | ast.Assign] = []
        for made in self._made_in(self.scope):
            if id(made) in inside or made.lineno > self.statement.lineno:
                continue
            statement = known.get(id(made))
            if statement is None or self.file.alone(statement) is None:
                return None
            if isinstance(statement, ast.Assign) and not (
                len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)
            ):
                return None
            if not any(statement is each for each in found):
                found.append(statement)
        return sorted(found, key=lambda each: each.lineno)


def _makers(file: PlainFile, scope: Scope) -> list[ast.FunctionDef]:
    """The functions of a file that make summaries, or call, at whatever remove, one that does."""
    functions = [
        each for each in file.tree.body if isinstance(each, ast.FunctionDef) and each is not scope
    ]
    found: dict[str, ast.FunctionDef] = {}
    while True:
        more = {e.name: e for e in functions if e.name not in found and _makes_one(e, found)}
        if not more:
            return list(found.values())
        found |= more


def _makes_one(node: ast.AST, makers: Collection[str]) -> bool:
    """Whether something in a part of the program makes a summary, or names a function that does."""
    return any(
        _is_summary(each) or isinstance(each, ast.Name) and each.id in makers
        for each in ast.walk(node)
    )


def _is_summary(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    module, _, kind = ast.unparse(node.func).rpartition(".")
    return module == "tf.summary" and kind in _KINDS


def _makes(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr | ast.Assign) and _is_summary(statement.value)


def _is_name_scope(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "tf.name_scope"


def _name(node: ast.expr) -> str:
    """`loss_summary` of `tf.summary.scalar("loss", loss)`."""
    tag = node.args[0] if isinstance(node, ast.Call) and node.args else None
    text = tag.value if isinstance(tag, ast.Constant) and isinstance(tag.value, str) else ""
    name = re.sub(r"\W+", "_", text).strip("_").lower()
    return f"{name}_summary" if name.isidentifier() else "summary"
