# SPDX-License-Identifier: Apache-2.0
"""The text of a random program that counts its own calls (parts.h, ways.h), and how it is built and run: all of it chosen by a seed.

    program = generate(seed)
    program.text, program.language, program.door, ...
"""
import collections
import random

Program = collections.namedtuple("Program", "seed language door optimisation features flags options variables text")

DOORS = ("hooks-gcc", "hooks-clang", "patchable-gcc", "patchable-clang", "spans")

# feature -> its statements. {f}: a function, {few}: a small number; what is in capitals is in parts.h or ways.h.
STATEMENTS = {
    "": ("CALL({f});", "CALL({f});", "CALL(ANY);", "if (CHANCE({few})) CALL({f});", "TIMES(truth_random({many})) CALL({f});",
         "TIMES({few}) CALL({f});", "TIMES(truth_random(500)) (void)leaf(depth);", "TIMES({few}) (void)other_leaf(depth);"),
    "status": ("if (CHANCE(7)) FAIL;", "if (CHANCE(5)) {{ FAIL; if (CHANCE(2)) NOT_FAILED; }}"),
    "throw": ("if (CHANCE({many})) THROW;", "if (CHANCE({many})) THROW;", "TRY(CALL({f}); CALL({f}););",
              "TRY(CALL({f}); CALL({f}); ); CALL({f});", "TRY_AND_RETHROW(CALL({f}););", "{{ object object_; CALL({f}); }}", "SORT;"),
    "jump": ("WITH_LANDING(CALL({f}); CALL({f}););", "WITH_LANDING(CALL({f}); CALL({f}););", "if (CHANCE({many})) JUMP;"),
    "signal": ("if (CHANCE({few})) RAISE;",),
    "ticks": ("WAIT_FOR_TICK;",),
    "deep": ("DIVE(10);", "DIVE(500);", "DIVE(5000);", "DIVE(30000);"),
    "mutual": ("if (CHANCE({few})) (void)ping((int)truth_random(60));",),
    "stack": ("ON_STACK({f});", "{{ char bytes[truth_random(500) + 1]; bytes[0] = 1; KEEP; CALL({f}); KEEP; (void)bytes; }}"),
    "thread": ("THREAD;",),
    "crowd": ("CROWD;",),
    "end thread": ("END_THREAD;",),
    "of thread": ("OF_THREAD;",),
    "fork": ("FORK;",),
    "start": ("START;",),
    "exit": ("END_PROCESS;",),
    "plugin": ("OPEN;",),
    "context": ("CONTEXT;",),
    "turns": ("TURNS;",),
    "tail": (),
}
ONLY_C = ("jump",)
ONLY_CXX = ("throw", "of thread")
# Of spans, those that a jump leaves have no end.
NOT_OF_SPANS = ("jump", "end thread", "plugin", "tail")
# What must not be done inside a handler that comes at any time, or from one stack to another.
CONFLICTS = {"ticks": ("crowd", "turns", "deep"), "turns": ("throw", "jump", "signal", "exit", "fork")}
# Of what throws in a part of its own, and was called indirectly, the probe does not know the name (docs/why/2026-11-20-landings.md).
WITHOUT_COLD_PARTS = "-fno-reorder-blocks-and-partition"
FEATURE_SHARE = 0.35

OPTIONS = ((), (), (), ("--clock", "monotonic"), ("--clock", "hybrid"), ("--shapes", "exact"), ("--shapes", "set"))
BIG_RINGS = {"MILLRACE_RING_SIZE": "2MiB", "MILLRACE_MEMORY": "128MiB"}
# A plugin that fills half of its ring before the probe has looked may have calls without names (docs/INSTRUMENTING.md).
SMALL_RINGS = {"MILLRACE_RING_SIZE": "4KiB"}

HEAD = """/* Made by tests/system/programs with MR_TEST_SEED={seed}. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
{defines}#include "ways.h"

const struct program program = {{{numbers}}};

{prototypes}

const function functions[] = {{{names}}};

NEVER void main_round(int depth)
{{
    {round}
}}
"""


def can_have(feature, language, door):
    if feature in ONLY_C:
        return language == "c" and door != "spans"
    if feature in ONLY_CXX:
        return language == "c++"
    return door != "spans" or feature not in NOT_OF_SPANS


def choose_features(choice, language, door):
    chosen = [feature for feature in STATEMENTS
              if feature and can_have(feature, language, door) and choice.random() < FEATURE_SHARE]
    for feature, others in CONFLICTS.items():
        if feature in chosen:
            chosen = [each for each in chosen if each not in others]
    # A child finds the loader's lock taken for ever if another thread of its parent was in dlopen().
    if {"thread", "fork", "plugin"} <= set(chosen):
        chosen.remove("plugin")
    return chosen


def statement(choice, features, functions):
    options = [text for feature in ("", *features) for text in STATEMENTS[feature]]
    text = choice.choice(options)
    while "{f}" in text:
        text = text.replace("{f}", choice.choice(functions), 1)
    return text.format(few=choice.randint(2, 12), many=choice.choice((5, 20, 60)))


def body(choice, features, functions):
    return "".join(f"    {statement(choice, features, functions)}\n" for _ in range(choice.randint(1, 5)))


def function_text(choice, name, linkage, features, functions):
    if "tail" in features and choice.random() < 0.25:
        leaf = choice.choice(("leaf", "other_leaf"))
        return f"\n{linkage} int {name}(int depth)\n{{\n    ENTER_TAIL;\n    return {leaf}(depth);\n}}\n"
    return f"\n{linkage} int {name}(int depth)\n{{\n    ENTER;\n{body(choice, features, functions)}    return depth;\n}}\n"


def defines_of(door, is_unwinding):
    if door == "spans":
        yield "SPANS"
    if door in ("spans", "hooks-gcc") and is_unwinding:
        yield "EXITS_ON_UNWINDING"
    if door.startswith("patchable"):
        yield "EXITS_BEFORE_JUMP"


def numbers_of(choice, seed, features, functions):
    """In the order of struct program."""
    calls = 150 if "ticks" in features else choice.choice((200, 3000, 10000))
    numbers = (seed, functions, calls, max(calls // 20, 50), 300, int("jump" in features), int("ticks" in features))
    return ", ".join(map(str, numbers))


def text_of(choice, seed, door, features, is_unwinding, is_inline):
    names = [f"f{index}" for index in range(choice.randint(4, 25))]
    linkage = "static" if is_inline else "TRACED"
    text = HEAD.format(
        seed=seed, defines="".join(f"#define {name}\n" for name in defines_of(door, is_unwinding)),
        numbers=numbers_of(choice, seed, features, len(names)),
        prototypes="\n".join(f"{linkage} int {name}(int depth);" for name in names), names=", ".join(names),
        round="TRY(CALL(ANY); CALL(ANY););" if "throw" in features else "CALL(ANY);")
    return text + "".join(function_text(choice, name, linkage, features, names) for name in names)


def generate(seed):
    choice = random.Random(seed)
    language, door = choice.choice(("c", "c++")), choice.choice(DOORS)
    features = choose_features(choice, language, door)
    optimisation = "-O2" if "tail" in features else choice.choice(("-O0", "-O1", "-O2", "-O2", "-O3"))
    is_unwinding = language == "c++" or ("jump" not in features and choice.random() < 0.5)
    is_inline = door == "hooks-gcc" and choice.random() < 0.4
    text = text_of(choice, seed, door, features, is_unwinding, is_inline)
    flags = ["-fexceptions"] if is_unwinding and language == "c" else []
    if door == "patchable-gcc" and "throw" in features:
        flags.append(WITHOUT_COLD_PARTS)
    rings = BIG_RINGS if "ticks" in features else {} if "plugin" in features else choice.choice(({}, {}, SMALL_RINGS))
    return Program(seed, language, door, optimisation, features, flags, choice.choice(OPTIONS), rings, text)
