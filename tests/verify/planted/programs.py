"""The programs that faults are planted in: both forms of each, and how they are run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from towermigrate.verify import VerifyOptions

_TESTS = Path(__file__).parents[1]
_FIXTURES = _TESTS.parents[1] / "fixtures"
TOWERS = 2
_ALL = 1000


@dataclass(frozen=True)
class Program:
    """One program. `before` and `after` are trees, or single files that are to be the whole tree."""

    name: str
    before: Path
    after: Path
    entry: str
    arguments: tuple[str, ...] = ()
    # To the end, where a program writes its last files; else enough that faults show which begin after step 5.
    steps: int = 8

    def options(self, tree: Path, rewritten: Path) -> VerifyOptions:
        """Verify the two trees, which were written by `lay_out`."""
        return VerifyOptions(
            tree,
            devices=(f"cpu:{TOWERS}",),
            rewritten=rewritten,
            steps=self.steps,
            entry=self.entry,
            arguments=self.arguments,
            timeout_s=120,
        )

    def sources(self) -> dict[str, str]:
        """The rewritten form's files by path."""
        if self.after.is_file():
            return {self.after.name: self.after.read_text(encoding="utf-8")}
        return {
            path.relative_to(self.after).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(self.after.rglob("*.py"))
        }

    def original(self, folder: Path) -> Path:
        """The original's tree; a single file gets a folder of its own."""
        if self.before.is_dir():
            return self.before
        folder.mkdir(parents=True, exist_ok=True)
        text = self.before.read_text(encoding="utf-8")
        (folder / self.before.name).write_text(text, encoding="utf-8")
        return folder


def lay_out(sources: dict[str, str], folder: Path) -> Path:
    """Write a tree."""
    for path, text in sources.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return folder


def _whole(name: str, entry: str, *arguments: str, steps: int = 8) -> Program:
    folder = _FIXTURES / name
    return Program(name, folder / "before", folder / "after", entry, arguments, steps)


def _small(name: str, folder: Path, *, steps: int = 8) -> Program:
    file = f"{name}.py"
    return Program(name, folder / "before" / file, folder / "after" / file, file, (), steps)


def _all() -> Iterator[Program]:
    yield _whole("mnist_feed", "digits.py")
    yield _whole(
        "cifar_queue", "textures_train.py", "--max_steps=12", "--train_dir=log", "--data_dir=data", steps=_ALL
    )  # fmt: skip
    yield _whole("cifar_same_batch", "spirals_train.py", "--train_dir=log", steps=_ALL)
    yield _whole("staged_gan", "complete.py", steps=_ALL)
    yield _whole("staged_gan_crash", "inpaint.py", steps=_ALL)
    yield _whole("wgan_gp", "rings.py")
    yield _whole("rule_unfed", "pairs.py")
    yield _whole("rule_fetch_order", "line.py")
    yield _whole("session_gan", "dots.py")
    yield _whole("session_tagger", "train.py", steps=_ALL)
    session = _TESTS / "fixtures" / "session"
    for name in ("gan", "mean_loss", "together", "trainer"):
        yield _small(name, session)
    yield _small("shared_adam", _TESTS / "fixtures")
    yield _small("everything", Path(__file__).parent / "fixtures", steps=_ALL)


PROGRAMS = {program.name: program for program in _all()}
