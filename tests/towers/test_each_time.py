"""Names that go by what gives another value each time: counters that the program keeps, the graph, the clock."""

from __future__ import annotations

import textwrap

import pytest

from tests.towers.looping import towers
from towermigrate.towers.names import differing_name
from towermigrate.towers.twice import Turns


def named(body: str, before: str = "") -> Turns:
    """Towers that name variables by `n`."""
    return towers(
        f"{textwrap.dedent(body)}\nwith tf.variable_scope('w%s' % n):\n    pass\n",
        before,
        "x = tf.zeros([])\n",
    )


FUNCTION = "def count():\n    pass\ncount.n = 0\n"
KIND = "class N(object):\n    k = 0\n    def __init__(self):\n        {}\n"
GENERATOR = (
    "def numbers():\n    k = 0\n    while True:\n        yield k\n        k += 1\nGEN = numbers()\n"
)
HOOK = "class P(object):\n    n = 0\n    def {}(self{}):\n        self.n += 1\n        return {}\nP1 = P()\n"
EXITS = (
    "class P(object):\n    n = 0\n    def __enter__(self):\n        return self\n"
    "    def __exit__(self, *given):\n        self.n += 1\nP1 = P()\n"
)
SUBCLASS = "class L({}):\n    pass\nQ = L()\n"

OTHERS = {
    "an attribute of a function": ("count.n += 1\nn = count.n", FUNCTION),
    "an attribute of a function, by text": ("setattr(count, 'n', getattr(count, 'n', 0) + 1)\nn = count.n", FUNCTION),
    "an attribute of a module": ("sys.made = getattr(sys, 'made', 0) + 1\nn = sys.made", "import sys\n"),
    "an attribute of a class": ("N.made = getattr(N, 'made', 0) + 1\nn = N.made", "class N(object):\n    pass\n"),
    "objects that a class counts": ("n = N().k", KIND.format("N.k += 1")),
    "objects that their type counts": ("n = N().k", KIND.format("type(self).k += 1")),
    "objects that their class counts": ("n = N().k", KIND.format("self.__class__.k += 1")),
    "what a generator gives next": ("n = next(GEN)", GENERATOR),
    "what a loop over a generator starts with": ("for n in GEN:\n    break", GENERATOR),
    "a list's numbers, taken one by one": ("n = next(GEN)[0]", "GEN = enumerate('abc')\n"),
    "numbers without an end": ("n = next(GEN)", "import itertools\nGEN = itertools.count()\n"),
    "how many variables there are": ("n = len(tf.trainable_variables())", ""),
    "how many of all variables there are": ("n = len(tf.global_variables())", ""),
    "how many a collection has": ("n = len(tf.get_collection('c'))", ""),
    "how many losses there are": ("n = len(tf.losses.get_losses())", ""),
    "how many operations there are": ("n = len(tf.get_default_graph().get_operations())", ""),
    "a name that the graph makes": ("n = tf.get_default_graph().unique_name('u')", ""),
    "a number that Keras makes": ("n = tf.keras.backend.get_uid('u')", ""),
    "the name of a tensor": ("n = tf.identity(x).op.name.replace('/', '_')", ""),
    "the name of a layer": ("n = tf.keras.layers.Dense(4).name", ""),
    "a scope of operations": ("with tf.name_scope('u') as scope:\n    n = scope.replace('/', '_')", ""),
    "where an object is": ("n = id(x)", ""),
    "the time": ("n = time.time()", "import time\n"),
    "an identifier": ("n = uuid.uuid4().hex", "import uuid\n"),
    "a random number": ("n = random.random()", "import random\n"),
    "a random number of NumPy's": ("n = np.random.randint(9)", "import numpy as np\n"),
    "a setting of the process": (
        "os.environ['K'] = str(int(os.environ.get('K', '0')) + 1)\nn = os.environ['K']", "import os\n"
    ),
    "arguments of the program that grow": ("sys.argv.append('x')\nn = len(sys.argv)", "import sys\n"),
    "a queue that turns": ("Q.rotate(1)\nn = Q[0]", "import collections\nQ = collections.deque([1, 2])\n"),
    "an array whose part is set": ("Q[:] = Q + 1\nn = Q[0]", "import numpy as np\nQ = np.zeros(2, int)\n"),
    "an array that is filled later": ("n = Q[0]\nQ.fill(3)", "import numpy as np\nQ = np.zeros(2, int)\n"),
    "an object's dictionary": ("config.__dict__['k'] = vars(config)['k'] + 1\nn = config.k", ""),
    "a method by its name": ("getattr(Q, 'append')(1)\nn = len(Q)", "Q = []\n"),
    "a method of the list's class": ("list.append(Q, 1)\nn = len(Q)", "Q = []\n"),
    "an operator as a function": ("operator.iadd(Q, [1])\nn = len(Q)", "import operator\nQ = []\n"),
    "a heap": ("heapq.heappush(Q, 1)\nn = len(Q)", "import heapq\nQ = []\n"),
    "a list that is kept in order": ("bisect.insort(Q, 1)\nn = len(Q)", "import bisect\nQ = []\n"),
    "a list that is shuffled": ("random.shuffle(Q)\nn = Q[0]", "import random\nQ = [1, 2, 3]\n"),
    "code for attributes": ("n = P1.made", HOOK.format("__getattr__", ", name", "self.n")),
    "code for a length": ("n = len(P1)", HOOK.format("__len__", "", "self.n")),
    "code for a text": ("n = P1", HOOK.format("__str__", "", "str(self.n)")),
    "code for a loop": ("for n in P1:\n    break", HOOK.format("__iter__", "", "iter([self.n])")),
    "code for an entry": ("n = P1[0]", HOOK.format("__getitem__", ", key", "self.n")),
    "code for the next value": ("n = next(P1)", HOOK.format("__next__", "", "self.n")),
    "code for the end of a with": ("with P1:\n    pass\nn = P1.n", EXITS),
    "a list of its own class": ("Q.append(1)\nn = len(Q)", SUBCLASS.format("list")),
    "a table of its own class": ("Q['a'] = Q.get('a', 0) + 1\nn = Q['a']", SUBCLASS.format("dict")),
    "a method that nothing is known of": ("n = config.next_name()", ""),
    "a function that nothing is known of": ("n = names_of.fresh()", "import names_of\n"),
    "the name of what a collection has": ("n = tf.get_collection('c')[-1].op.name", ""),
    "what a queue has next": ("n = Q.get()", "import queue\nQ = queue.Queue()\n"),
    "a part of numbers without an end": (
        "n = list(itertools.islice(GEN, 1))[0]", "import itertools\nGEN = itertools.count()\n"
    ),
    "texts that go round, beside others": (
        "n = [a for a, b in zip(GEN, [1])][0]", "import itertools\nGEN = itertools.cycle('ab')\n"
    ),
    "how many lines a file has left": ("n = len(list(F))", "F = open('names')\n"),
    "what a file has next": ("n = F.readline()", "F = open('names')\n"),
}  # fmt: skip
ALIKE = {
    "a text": ("n = 'a_{}'.format(names).lower().replace('b', 'c')", ""),
    "numbers": ("n = int(math.log(config.size, 2)) + max(config.a, len(names))", "import math\n"),
    "numbers of NumPy's": ("n = int(np.prod(config.shape[1:]))", "import numpy as np\n"),
    "a setting": ("n = config.get('name')", ""),
    "a setting of the process, only read": ("n = os.environ.get('K', '0')", "import os\n"),
    "the shape of a tensor": ("n = x.get_shape().as_list()[-1]", ""),
    "the name of a variable": ("n = tf.get_variable('v', []).op.name", ""),
    "the names of variables": ("n = 'prior/' + [v.name for v in tf.trainable_variables()][0]", ""),
    "a variable scope": ("n = tf.get_variable_scope().name.replace('/', '_')", ""),
    "a random number that was drawn before": ("n = K", "import random\nK = random.random()\n"),
    "how many variables there were": ("n = K", "K = len(tf.global_variables())\n"),
    "a generator of its own": ("n = next(numbers())", GENERATOR),
    "a class's number": ("n = N.k", KIND.format("pass")),
    "an attribute that a function may have": ("n = getattr(count, 'm', 0)", FUNCTION),
    "a class that an object is of": ("n = config.__class__.__name__", ""),
    "a setting that each tower sets to the same": ("config.mode = 'train'\nn = config.mode", ""),
    "an entry that each tower sets to the same": ("os.environ['K'] = '1'\nn = os.environ['K']", "import os\n"),
    "only said": ("print(time.time())\nn = config.size", "import time\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_what_may_be_another_each_time_may_name_other_variables(name: str) -> None:
    found = named(*OTHERS[name])
    assert found.whole
    assert differing_name(found) is not None


@pytest.mark.parametrize("name", ALIKE)
def test_what_gives_the_same_names_the_same_variables(name: str) -> None:
    found = named(*ALIKE[name])
    assert found.whole
    assert differing_name(found) is None
