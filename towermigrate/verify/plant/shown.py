"""Faults in what people see: returned values, printed and logged lines, checkpoints, event files, other files."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.verify.plant.fault import Fault
from towermigrate.verify.plant.source import Source, argument, last_name


def faults(source: Source) -> Iterator[Fault]:
    yield from _returned(source)
    yield from _printed(source)
    yield from _logged(source)
    yield from _checkpoints(source)
    yield from _written(source)
    yield from _events(source)


def _returned(source: Source) -> Iterator[Fault]:
    for call in source.calls("last_tower", "first_tower"):
        function = source.function(call)
        if not source.loop or function is None:
            continue
        name = last_name(call.func)
        other = "first_tower" if name == "last_tower" else "last_tower"
        if "apply_" in source.code(function) and source.towers > 1:
            yield from source.fault(
                "returned: another tower's",
                f"{other} in place of {name}",
                call,
                source.replace(call.func, source.code(call.func).replace(name, other)),
            )
            yield from source.fault(
                "returned: mean over the towers",
                f"mean_over_towers in place of {name}",
                call,
                source.replace(call.func, source.code(call.func).replace(name, "mean_over_towers")),
            )
    if source.loop:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            call = node.value
            fetched = call.args[0] if last_name(call.func) == "run" and call.args else None
            if isinstance(fetched, ast.List) and len(fetched.elts) > 1:
                if "train" in source.code(fetched.elts[0]) and isinstance(
                    fetched.elts[1], (ast.Name, ast.Attribute, ast.Subscript)
                ):
                    yield from source.fault(
                        "returned: something else",
                        "what is fetched is multiplied by 1.05 when it comes back",
                        node,
                        source.replace(
                            call,
                            f"(lambda got: type(got)([got[0], np.multiply(got[1], 1.05), *got[2:]]))"
                            f"({source.code(call)})",
                        ),
                    )


def _printed(source: Source) -> Iterator[Fault]:
    for call in source.calls("print"):
        if not call.args:
            continue
        first = call.args[0]
        shown = first.args if isinstance(first, ast.Call) else []
        words = next(
            (
                each
                for each in ast.walk(first)
                if isinstance(each, ast.Constant)
                and isinstance(each.value, str)
                and any(letter.isalpha() for letter in each.value)
                and each not in shown
            ),
            None,
        )
        # Of a subscript or a call it is not known that they are a text.
        text = isinstance(first, (ast.Constant, ast.BinOp, ast.JoinedStr))
        if words is not None and (text or last_name(getattr(first, "func", first)) == "format"):
            yield from source.fault(
                "printed: other words",
                "the line begins with a word more",
                call,
                source.wrap(first, "'So ' + (", ")")
                if not isinstance(first, ast.Constant)
                else source.replace(first, "'So ' + " + source.code(first)),
            )
        numbers = (
            first.right if isinstance(first, ast.BinOp) and isinstance(first.op, ast.Mod) else None
        )
        if isinstance(numbers, ast.Tuple) and len(numbers.elts) > 1:
            yield from source.fault(
                "printed: another number",
                "the last number is printed 2 % larger",
                call,
                source.wrap(numbers.elts[-1], "(", ") * 1.02"),
            )
        statement = source.statement(call)
        if isinstance(statement, ast.Expr) and source.can_stand_beside(statement):
            yield from source.fault(
                "printed: a line twice",
                "the line is printed twice",
                call,
                source.after(statement, source.code(statement)),
            )


def _logged(source: Source) -> Iterator[Fault]:
    for call in source.calls("warning", "warn", "error", "fatal"):
        if "logging" in source.code(call.func) and call.args:
            yield from source.fault(
                "logged: other words",
                "the record begins with a word more",
                call,
                source.wrap(call.args[0], "'So ' + (", ")"),
            )


def _written(source: Source) -> Iterator[Fault]:
    for call in source.calls("write"):
        # Of a text only: a file of bytes would not take it.
        text = call.args[0] if len(call.args) == 1 else None
        written = text.left if isinstance(text, ast.BinOp) else text
        if not (isinstance(written, ast.Constant) and isinstance(written.value, str)):
            continue
        if "std" not in source.code(call.func):
            yield from source.fault(
                "files: other contents",
                "what is written begins with a letter more",
                call,
                source.wrap(call.args[0], "'+' + (", ")"),
            )


def _checkpoints(source: Source) -> Iterator[Fault]:
    for call in source.calls("tf1_saver"):
        for name, said in (
            ("optimizers", "the optimizers' slots are not saved"),
            ("averages", "the moving averages are not saved"),
        ):
            yield from source.fault(
                "files: tensors missing", said, call, source.drop_keyword(call, name)
            )
    for call in source.calls("Saver"):
        if not call.args:
            yield from source.fault(
                "files: tensors missing",
                "only the weights are saved",
                call,
                source.add_argument(call, "tf.compat.v1.trainable_variables()"),
            )
    for call in source.calls("save"):
        place = 0 if source.loop else 1
        path = argument(call, place, "save_path")
        if path is None:
            continue
        yield from source.fault(
            "files: another name",
            "the checkpoint has another name",
            call,
            source.wrap(path, "(", ") + '_'"),
        )
        step = next((k.value for k in call.keywords if k.arg == "global_step"), None)
        if step is not None:
            yield from source.fault(
                "files: another step",
                "the checkpoint is named after the next step",
                call,
                source.wrap(step, "(", ") + 1"),
            )
        statement = source.statement(call)
        if not source.can_stand_beside(statement):
            continue
        if source.loop:
            change = "[v.assign(v * 1.02) for v in variables.trainable()]"
        else:
            session = source.code(call.args[0])
            change = (
                f"with {session}.graph.as_default(): {session}.run([v.assign(v * 1.02) "
                "for v in tf.compat.v1.trainable_variables()])"
            )
        yield from source.fault(
            "files: tensors changed",
            "the weights grow by 2 % before they are saved",
            call,
            source.before(statement, change),
        )


def _events(source: Source) -> Iterator[Fault]:
    for call in source.calls("add_summary"):
        step = argument(call, 1, "global_step")
        if step is not None:
            yield from source.fault(
                "events: step",
                "the summary is written for the next step",
                call,
                source.wrap(step, "(", ") + 1"),
            )
        statement = source.statement(call)
        if isinstance(statement, ast.Expr) and source.can_stand_beside(statement):
            yield from source.fault(
                "events: not written",
                "the summary is not written",
                call,
                source.replace(statement, "pass"),
            )
    for call in source.calls("scalar", "histogram"):
        if "summary" not in source.code(call.func) or len(call.args) < 2:
            continue
        yield from source.fault(
            "events: tag",
            "the summary has another tag",
            call,
            source.wrap(call.args[0], "(", ") + '_'"),
        )
        yield from source.fault(
            "events: value",
            "the summary's value is multiplied by 1.05",
            call,
            source.wrap(call.args[1], "1.05 * (", ")"),
        )
