"""What gives the same each time that it is called with the same, and what need not.

A name that a tower takes from something else (a random number, the clock, the number of operations of the graph so far)
is another one for each tower. What is not known to give the same is taken for one that does not.
"""

from __future__ import annotations

import re

_MODULES = re.compile(
    r"^(?:builtins|math|cmath|string|re|json|copy|operator|itertools|functools|collections|contextlib|types|inspect"
    r"|fractions|decimal|numbers|numpy|np|six|os\.path|os\.environ|os\.getenv|os\.fspath|os\.sep|posixpath|pathlib"
    r"|pprint|textwrap|logging|warnings|argparse|configparser|platform|absl|typing|enum|dataclasses|easydict|abc"
    r"|sys\.(?:stdout|stderr|exit|getsizeof)|past|future|builtins|__future__|tf)(?:\.|$)"
)
"""Python's own modules, and those beside it, that only compute."""

_NOT_THESE = re.compile(
    r"^(?:builtins\.(?:id|input|raw_input|open|file|vars|globals|locals|eval|exec|execfile|hash|object|dir)$"
    r"|(?:numpy|np)\.(?:random|load|fromfile|genfromtxt|loadtxt|memmap|empty)(?:\.|$|_like$)"
    r"|itertools\.count$|platform\.node$|inspect\.(?:stack|currentframe))"
)
"""What is in them and gives another value each time, or one that the program does not say."""

_METHODS = set(
    # of texts
    "capitalize casefold center count decode encode endswith expandtabs find format format_map index isalnum isalpha "
    "isdecimal isdigit islower isnumeric isspace istitle isupper join ljust lower lstrip partition replace rfind rindex "
    "rjust rpartition rsplit rstrip split splitlines startswith strip swapcase title translate upper zfill "
    # of containers
    "copy get has_key items iteritems iterkeys itervalues keys values difference intersection issubset issuperset "
    "isdisjoint symmetric_difference union most_common elements _asdict _replace "
    # of numbers and arrays
    "all any argmax argmin argsort astype bit_length conjugate cumprod cumsum diagonal dot flatten is_integer item max "
    "mean min nonzero prod ravel repeat reshape round squeeze std sum swapaxes tolist trace transpose var view "
    # of patterns
    "findall finditer fullmatch group groupdict groups match search span start end sub subn "
    # of shapes and types
    "as_list as_proto assert_has_rank concatenate dims is_compatible_with is_fully_defined merge_with ndims "
    "num_elements rank with_rank with_rank_at_least with_rank_at_most as_numpy_dtype base_dtype "
    # of settings
    "add_argument as_dict flag_values_dict get_config getboolean getfloat getint has_option has_section hparam_def "
    "options parse_args parse_known_args sections to_dict to_json "
    # of paths
    "as_posix exists is_dir is_file joinpath relative_to with_name with_suffix "
    # what only says something
    "critical debug error exception info log warn warning write flush".split()
)
"""Methods of Python's own objects, and of shapes and settings, that give the same each time."""

GRAPH = re.compile(
    r"^tf\.(?:get_collection(?:_ref)?|(?:global|local|model|trainable|moving_average|all|initialize_all|"
    r"metric)_variables|summary\.merge_all|report_uninitialized_variables|"
    r"losses\.get_(?:losses|regularization_losses|total_loss|regularization_loss)"
    r"|contrib\.(?:slim|framework)\.(?:get_(?:model_|trainable_|local_|global_|or_create_)?(?:variables\w*|"
    r"unique_variable)|losses\.get_\w+)|(?:contrib\.)?(?:slim\.)?losses\.get_\w+|keras\.backend\.get_uid)$"
)
"""What of TensorFlow gives what is in the graph by then."""

GRAPHS_OWN = {"unique_name", "get_operations", "get_collection", "get_collection_ref", "get_name_scope",
              "get_all_collection_keys", "as_graph_def"}  # fmt: skip
"""The same, as methods of a graph."""

CHANGED_BY = {
    **dict.fromkeys(
        "heapq.heappush heapq.heappop heapq.heapify heapq.heapreplace heapq.heappushpop random.shuffle "
        "numpy.random.shuffle operator.iadd operator.iconcat operator.setitem operator.delitem numpy.copyto numpy.put "
        "numpy.place numpy.putmask numpy.fill_diagonal".split(),
        0,
    ),
    **dict.fromkeys(
        [f"bisect.{name}" for name in ("insort", "insort_left", "insort_right")]
        + [
            f"builtins.list.{name}"
            for name in "append extend insert pop remove clear sort reverse".split()
        ]
        + [f"builtins.dict.{name}" for name in "update setdefault pop popitem clear".split()]
        + [f"builtins.set.{name}" for name in "add update discard remove pop clear".split()],
        0,
    ),
}
"""Functions that change what they are given, with where it stands among their arguments."""


_ITERATORS = re.compile(
    r"^(?:itertools\.|builtins\.(?:iter|map|filter|zip|reversed|enumerate|open|file)$|csv\.reader$|os\.(?:walk|scandir)$)"
)
"""What gives something whose values are taken one after another, whoever takes them."""

VARIABLES = re.compile(r"variables?$")
"""What of the functions that look at the graph gives variables."""


def gives_iterator(name: str) -> bool:
    """Whether what a library's function gives is used up as it is read."""
    return bool(_ITERATORS.match(name))


def gives_the_same(name: str) -> bool:
    """Whether a library's function gives the same of the same each time."""
    return bool(_MODULES.match(name)) and not _NOT_THESE.match(name)


def method_gives_the_same(name: str, args: int) -> bool:
    """The same of a method of something of which no more is known. A queue's `get()` takes what is next."""
    return name in _METHODS and (name != "get" or args > 0)
