"""Objects that are asked for their train op and their loss by properties and methods that return what they keep."""

from __future__ import annotations

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of_all
from tests.differential.test_carried import (
    INIT,
    LOSS,
    MADE,
    OUTSIDE,
    RUN,
    TRAIN,
    TRAINED,
    case,
    other,
    trainer,
)

OP = "        self.train_op = opt.apply_gradients(grads, global_step=self.step_count)\n"
OWN_OP, OWN_LOSS = (
    OP.replace("self.train_op", "self._train_op"),
    LOSS.replace("self.loss", "self._loss"),
)


def asked(train: str = "", loss: str = "", *more: Change) -> tuple[Change, ...]:
    """The program whose object keeps what it is asked for under names of its own."""
    return (OP, OWN_OP), (LOSS, OWN_LOSS), (TRAIN, (train or TRAIN_OP) + (loss or LOSS_OF) + TRAIN), *more  # fmt: skip


TRAIN_OP = "    @property\n    def train_op(self):\n        return self._train_op\n\n"
LOSS_OF = "    @property\n    def loss(self):\n        return self._loss\n\n"
GIVES = "    def get_train_op(self):\n        return self._train_op\n\n"
CALLED = (RUN, RUN.replace("self.train_op", "self.get_train_op()"))

TAKEN = [
    case("by the object itself", *asked()),
    case("by a method that is called", *asked(GIVES, "", CALLED)),
    case("asked by the caller", (OP, OWN_OP), (LOSS, OWN_LOSS), (INIT, TRAIN_OP + LOSS_OF + INIT), *OUTSIDE),
    case("in front of all", (OP, OWN_OP), (LOSS, OWN_LOSS), (INIT, TRAIN_OP + LOSS_OF + INIT)),
    case("of a property that gives another one's", *asked("", LOSS_OF + "    @property\n    def kept(self):\n        return self.count\n\n", (TRAINED, TRAINED + "    print('kept', trainer.kept)\n"))),
]  # fmt: skip
LEFT = [
    other("one that does more", "TM205", *asked("    @property\n    def train_op(self):\n        self.count += 1\n        return self._train_op\n\n")),
    other("one that another object has too", "TM205", *asked("", "", (MADE, MADE + "    other = type('Other', (), {'train_op': 3})()\n    print(other.train_op)\n"))),
    other("one of a name that is the class's own", "TM205", (OP, OP.replace("self.train_op", "self.__train_op")), (TRAIN, TRAIN_OP.replace("_train_op\n\n", "__train_op\n\n") + TRAIN)),
    other("one that may be set", "TM205", *asked(TRAIN_OP + "    @train_op.setter\n    def train_op(self, value):\n        self._train_op = value\n\n")),
    other("one that is asked for by a text", "TM205", *asked("", "", (MADE, MADE + "    print(getattr(trainer, 'loss') is not None)\n"))),
    other("one that says what it is", "TM205", *asked("", LOSS_OF.replace("        return", '        """The last tower\'s."""\n        return'))),
    other("one that is asked for in a text", "TM205", *asked("", "", (MADE, MADE + "    print(f'{trainer.loss is None}')\n"))),
    other("a method that is handed on", "TM205", *asked(GIVES, "", CALLED, (MADE, MADE + "    asks = trainer.get_train_op\n"))),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT, trainer)
