"""`[tool.towermigrate]` of a pyproject.toml, the rules that a run shows, and the files that it leaves out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from towermigrate.findings import Finding
    from towermigrate.passes import Refused, Style
    from towermigrate.rewrite import Python2


class ConfigError(Exception):
    """A setting that cannot be meant; the text says where it stands, what is wrong, and what is known."""


@dataclass(frozen=True)
class Config:
    """What a run is told. An option of the command line wins over the same key of `[tool.towermigrate]`.

    `exclude` are globs (see `excluded`), `select` and `ignore` rule ids or their beginnings (`TM1`).
    """

    exclude: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    refused: Refused = "keep"
    style: Style = "auto"
    py2: Python2 = "auto"
    gitignore: bool = True


_CHOICES = {
    "refused": ("keep", "symbols"),
    "style": ("auto", "loop", "session"),
    "py2": ("auto", "never"),
}


def read_config(path: Path) -> tuple[Config, Path]:
    """The settings for a tree or file, and the folder that its `exclude` globs start from.

    They are those of the nearest pyproject.toml, in the folder of `path` or above, that has a table
    `[tool.towermigrate]`; the search ends at the root of a git repository. Raises ConfigError.
    """
    start = (path if path.is_dir() else path.parent).resolve()
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            table = _table(file)
            if table is not None:
                return _config(table, file), folder
        if (folder / ".git").exists():
            break
    return Config(), start


def _table(file: Path) -> Mapping[str, Any] | None:
    """`[tool.towermigrate]` of a file, None where it has none."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    if "towermigrate" not in text:  # another tool's mistake in its own file is not ours to report
        return None
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table = tomllib.loads(text).get("tool", {}).get("towermigrate")
    except (tomllib.TOMLDecodeError, AttributeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{file}: tool.towermigrate is a {type(table).__name__}, not a table")
    return table


def _config(table: Mapping[str, Any], file: Path) -> Config:
    known = [field.name for field in fields(Config)]
    values: dict[str, Any] = {}
    for key, value in table.items():
        where = f"{file}: [tool.towermigrate] {key}"
        if key not in known:
            raise ConfigError(f"{where}: there is no such key; known are {', '.join(known)}")
        if key in _CHOICES:
            if value not in _CHOICES[key]:
                raise ConfigError(f"{where} = {value!r}: must be one of {', '.join(_CHOICES[key])}")
            values[key] = value
            continue
        if key == "gitignore":
            if not isinstance(value, bool):
                raise ConfigError(f"{where} = {value!r}: must be true or false")
            values[key] = value
            continue
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            raise ConfigError(f'{where} = {value!r}: must be a list of texts, as ["…"]')
        values[key] = tuple(value)
        if key != "exclude":
            values[key] = rule_prefixes(value, where, ignored=key == "ignore")
    return Config(**values)


def settings(config: Config, given: Mapping[str, Any]) -> Config:
    """`config` with what was given on the command line in its place.

    Args:
        config: what the file says.
        given: options by name; None or an empty list is one that was not given.

    Raises:
        ConfigError: an option cannot be meant.
    """
    values = {key: value for key, value in given.items() if value not in (None, ())}
    values.pop("exclude", None)  # its globs start elsewhere: see `excluded`
    for key in ("select", "ignore"):
        if key in values:
            values[key] = rule_prefixes(values[key], f"--{key}", ignored=key == "ignore")
    return replace(config, **values)


def excluded(path: Path, config: Config, base: Path, given: Sequence[str]) -> Callable[[str], bool]:
    """Says of a path relative to the tree whether a file is excluded.

    Globs are those of a `.gitignore`: one with a slash in it starts at the base folder, one without fits a name
    at any depth, `**` crosses folders, and what fits a folder takes all in it.

    Args:
        path: the tree, or a file, whose folder then is the tree.
        config: its `exclude` counts where the command line gives none; those globs start at `base`.
        base: the folder of the pyproject.toml.
        given: globs of the command line; they start at the tree.
    """
    globs = given or config.exclude
    if not globs:
        return lambda _: False
    from pathspec import GitIgnoreSpec

    match = GitIgnoreSpec.from_lines(globs).match_file
    root = (path if path.is_dir() else path.parent).resolve()
    prefix = "." if given else root.relative_to(base).as_posix()
    return match if prefix == "." else lambda name: match(f"{prefix}/{name}")


def rule_prefixes(given: Iterable[str], where: str, *, ignored: bool) -> tuple[str, ...]:
    """Rule ids or beginnings of ids, checked: each must fit a rule, an ignored one not only refusals.

    Args:
        given: texts as `TM118`, `tm1` or `TM1,TM301`.
        where: what the error says they come from.
        ignored: whether these rules are to be hidden.
    """
    from towermigrate.findings import RULES

    found = [part.strip().upper() for text in given for part in text.split(",") if part.strip()]
    for prefix in found:
        fitting = [rule for rule in RULES.values() if rule.id.startswith(prefix)]
        if not fitting:
            raise ConfigError(f"{where}: no rule begins with {prefix}; see `towermigrate explain`")
        if ignored and all(rule.severity == "error" for rule in fitting):
            raise ConfigError(f"{where}: {prefix} is a refusal: refusals cannot be ignored")
    return tuple(found)


def is_shown(finding: Finding, select: Sequence[str], ignore: Sequence[str]) -> bool:
    """Whether a finding is reported. A refusal always is; else the longer of two prefixes that fit wins."""
    if finding.severity == "error":
        return True

    def fit(prefixes: Sequence[str]) -> int:
        return max(
            (len(prefix) for prefix in prefixes if finding.rule.startswith(prefix)), default=-1
        )

    chosen = fit(select) if select else 0
    return chosen >= 0 and fit(ignore) < max(chosen, 1)
