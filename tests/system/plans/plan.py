# SPDX-License-Identifier: Apache-2.0
"""Random plans: what each of a few programs does, as steps that program.c follows (program_plan.c has the words).

A plan has habits, some of HABITS: what of the odd things that programs do it does. One without habits is all hand-offs and messages
that come whole."""
import random

FUNCTIONS = 20
SPANS = 10
DEPTH_MAX = 6  # hand-overs, one below the other
NEST_MAX = 4
EDGES_MAX = 24  # that one request may make

# What a plan may do besides. Each is a share of the places where it could be done.
HABITS = ("steal", "several", "empty", "unattached", "undetached", "detached-twice", "dropped", "twice", "unreadable", "zero", "headless",
          "never", "inside", "ask", "no-begin", "two-roots", "slow", "crowd",
          "mixed-crowd", "many")
CROWD = 50  # squared: that many take part in one trace
MANY = 300  # call trees of one job; only 256 of them are of its trace
# Which of two that have one edge is the first depends on which comes first: in plans of these a thread takes no job in the middle of
# another, and leaves out no detach, so that both are the same.
UNORDERED = {"twice"}
NOT_WITH_UNORDERED = {"steal", "undetached", "detached-twice"}


def random_habits(random_):
    """None, or about half of them."""
    if random_.random() < 0.2:
        return set()
    habits = {habit for habit in HABITS if random_.random() < 0.5}
    return habits - NOT_WITH_UNORDERED if habits & UNORDERED else habits


class Plan:
    """Of program P: tasks[P], a list of texts; roots[P], numbers of tasks; expected[P], how many tasks it runs that are no roots."""

    def __init__(self, seed, programs=3, requests=30, habits=None):
        self.random = random.Random(seed)
        self.habits = random_habits(self.random) if habits is None else set(habits)
        self.programs = programs
        self.tasks = [[] for _ in range(programs)]
        self.roots = [[] for _ in range(programs)]
        self.expected = [0] * programs
        self.threads = [self.random.randint(1, 5) for _ in range(programs)]
        self.is_pool_traced = [self.random.random() < 0.7 for _ in range(programs)]
        self.hands_on = [self.random.random() < 0.5 for _ in range(programs)]
        self.pause_us = 0
        kinds = [Request(self) for _ in range(max(3, requests // 5))]
        for _ in range(requests):
            self.add_request(self.random.choice(kinds))
        for habit in ("crowd", "mixed-crowd"):
            if habit in self.habits:
                self.add_request(Crowd(self, is_mixed=habit != "crowd"))

    def add_request(self, request):
        self.roots[request.program].append(request.root)
        for program, count in enumerate(request.expected):
            self.expected[program] += count

    def add_task(self, program, text):
        self.tasks[program].append(text)
        return len(self.tasks[program]) - 1

    def text(self, program):
        """The file that the program reads."""
        lines = [f"self {program}", f"threads {self.threads[program]}", f"expected {self.expected[program]}", f"pause {self.pause_us}",
                 f"traced-pool {int(self.is_pool_traced[program])}", f"hands-on {int(self.hands_on[program])}"]
        lines += [f"task {number} {text}" for number, text in enumerate(self.tasks[program])]
        lines += [f"root {root}" for root in self.roots[program]]
        return "\n".join(lines) + "\n"


class Request:
    """A root's task, with all tasks that come of it; expected[P]: how many of these program P runs."""

    def __init__(self, plan):
        self.plan = plan
        self.random = plan.random
        self.program = self.random.randrange(plan.programs)
        self.expected = [0] * plan.programs
        self.edges = self.random.randint(1, EDGES_MAX)  # that may still be made
        self.root = plan.add_task(self.program, self.root_text())

    def has(self, habit):
        return habit in self.plan.habits

    def chance(self, habit, share):
        return self.has(habit) and self.random.random() < share

    def root_text(self):
        """Of the task that a request begins with."""
        begin = "" if self.chance("no-begin", 0.5) else "begin "
        calls = self.random.randint(1, 2) if self.has("two-roots") else 1
        detach = " detach" if self.random.random() < 0.6 else ""
        return begin + " ".join(self.call(self.program, 0, 0, is_root=True) for _ in range(calls)) + detach

    def call(self, program, depth, nest, is_root=False, first=""):
        """`first`: a step that it begins with."""
        kind, count = ("call", FUNCTIONS) if self.random.random() < 0.7 else ("span", SPANS)
        steps = [self.step(program, depth, nest, is_root) for _ in range(self.random.randint(0, 4))]
        return " ".join(filter(None, [kind, str(self.random.randrange(count)), first, *steps, "end"]))

    def step(self, program, depth, nest, is_root):
        which = self.random.random()
        if which < 0.25 and nest < NEST_MAX:
            return self.call(program, depth, nest + 1, is_root)
        if which < 0.8 and self.edges > 0 and depth < DEPTH_MAX:
            self.edges -= 1
            return self.hand_over(program, depth) if self.random.random() < 0.55 else self.send(program, depth, is_root)
        if which < 0.85 and nest == 0:
            return "fail"
        if which < 0.9:
            return f"sleep {self.random.choice([5000, 20000, 50000] if self.has('slow') else [50, 200, 1000])}"
        if which < 0.95 and nest < NEST_MAX - 1:
            return " ".join([self.leaf_text()] * self.random.randint(1, 4))
        return "steal" if self.has("steal") else ""

    # --- jobs, within a program ---

    def hand_over(self, program, depth):
        if self.chance("dropped", 0.1):
            return "hand 0 dropped"
        if self.chance("twice", 0.1):
            return f"hand {self.task_for_two(program)} twice"
        how = "plain"
        for habit in ("unattached", "undetached", "detached-twice"):
            if self.chance(habit, 0.1):
                how = habit
        return f"hand {self.task(program, depth)} {how}"

    # --- messages, to another ---

    def send(self, program, depth, is_root):
        to = self.random.choice([other for other in range(self.plan.programs) if other != program])
        if self.chance("dropped", 0.05):
            return f"send {to} 0 dropped"
        for habit in ("unreadable", "zero", "headless"):
            if self.chance(habit, 0.05):
                return f"send {to} {self.leaf(to)} {habit}"
        if self.chance("twice", 0.07):
            return f"send {to} {self.task_for_two(to)} twice"
        # Programs ask those behind them alone, so that nobody waits in a circle; and a listener asks nobody, for it brings the answers.
        if to > program and (is_root or self.plan.hands_on[program]) and self.chance("ask", 0.3):
            return f"ask {to} {self.answer(to)}"
        if self.chance("inside", 0.2):
            return f"send {to} {self.task(to, depth, self.first_inside(to, depth))} inside"
        how = "plain"
        for habit, share in (("never", 0.08), ("undetached", 0.05)):
            if self.chance(habit, share):
                how = habit
        return f"send {to} {self.task(to, depth)} {how}"

    def first_inside(self, program, depth):
        """Receives in the call tree; some hand over before, so that the receive is not what the call tree begins with."""
        if depth >= DEPTH_MAX or self.random.random() < 0.7:
            return "receive"
        return f"hand {self.leaf(program)} plain receive"

    # --- tasks ---

    def add(self, program, text, runs=1):
        self.expected[program] += runs
        return self.plan.add_task(program, text)

    def task(self, program, depth, first=""):
        if self.chance("empty", 0.07):
            return self.add(program, first)
        if self.chance("many", 0.03):
            leaves = [self.leaf_text()] * self.random.randint(200, MANY)
            return self.add(program, " ".join([self.call(program, DEPTH_MAX, NEST_MAX, first=first), *leaves]))
        count = self.random.randint(2, 4) if self.chance("several", 0.2) else 1
        calls = [self.call(program, depth + 1, 0, first=first if i == 0 else "") for i in range(count)]
        return self.add(program, " ".join(calls))

    def leaf_text(self):
        return f"call {self.random.randrange(FUNCTIONS)} end"

    def leaf(self, program):
        return self.add(program, self.leaf_text())

    def task_for_two(self, program):
        return self.add(program, f"call {self.random.randrange(FUNCTIONS)} {self.leaf_text()} end", runs=2)

    def answer(self, program):
        """Most answers have a header, which the one that asked receives in its call tree."""
        return self.add(program, f"call {self.random.randrange(FUNCTIONS)} answer {int(self.random.random() < 0.7)} end")


class Crowd(Request):
    """CROWD jobs hand over to CROWD each, which are all alike, or of many kinds."""

    def __init__(self, plan, is_mixed):
        self.is_mixed = is_mixed
        super().__init__(plan)

    def root_text(self):
        return f"begin call 0 {self.hands([self.relay() for _ in range(CROWD)])} end"

    def relay(self):
        return self.add(self.program, f"call 1 {self.hands([self.one() for _ in range(CROWD)])} end")

    def one(self):
        return self.leaf(self.program) if self.is_mixed else self.add(self.program, "call 2 end")

    @staticmethod
    def hands(tasks):
        return " ".join(f"hand {task} plain" for task in tasks)
