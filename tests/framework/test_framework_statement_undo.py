"""Whatever is done in statements and then given up leaves no trace: not in the model, not in plugins that follow it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recount
from builders import GANG, Desk, group, node, pod, queue
from drawing import drawn
from pumice.framework.breakdowns import PluginBreakdownError
from pumice.framework.plugin import Plugin
from pumice.framework.reasons import FitSummary
from pumice.model.statuses import Status

HELD = "{name: follower}, {name: picky}"
CONFIG = GANG.replace("{name: nodeorder}", f"{{name: nodeorder}}, {HELD}")
POLICY = [{"name": "ring", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["rank"]}]


class Follower(Plugin):
    """Keeps sums by following placements, as a sharing plugin does."""

    name = "follower"

    def open(self, session):
        self.by_queue, self.by_node, self.placed = {}, {}, {}
        session.add_handler(self.follow, one_job=True)

    def follow(self, run, sign):
        for task, target in zip(run.tasks, run.targets, strict=True):
            self._add(self.by_queue, task.job.queue if task.job else "", task, sign)
            self._add(self.by_node, target.name, task, sign)
            self._step(self.placed, task.uid, sign)

    def _add(self, sums, key, task, sign):
        for name, units in task.shape.request.amounts.items():
            self._step(sums, (key, name), sign * units)

    @staticmethod
    def _step(sums, key, amount):
        sums[key] = sums.get(key, 0) + amount
        if not sums[key]:
            del sums[key]


class Picky(Plugin):
    """Refuses some pods by name, wherever they are to go."""

    name = "picky"

    def open(self, session):
        session.add_handler(self.answer, may_refuse=True)

    def answer(self, run, sign):
        return "not this one" if sign > 0 and any("picky" in task.name for task in run.tasks) else None


def desk(*, picky, picks=Picky):
    """Three nodes, three jobs in two queues with two shapes, roles, sub-groups, ports and best-effort pods, and pods on nodes."""
    config = CONFIG if picky else CONFIG.replace(", {name: picky}", "")
    made = Desk(config, Follower, picks)
    made.feed(queue("other"), *(node(f"n{i}", cpu="64", pods="500") for i in range(3)))
    made.feed(group("one", 3), group("two", 1, queue="other", subGroupPolicy=POLICY), group("three", 0))
    port = [{"hostPort": 80}]
    kinds = (
        lambda i: pod(f"one-w-{i}", "one", cpu="1", role="w"),
        lambda i: pod(f"one-m-{i}", "one", cpu="2", memory="1Gi", role="m", ports=port if i % 2 else ()),
        lambda i: pod(f"two-{i}", "two", cpu="1", labels={"rank": str(i // 2)} if i else {}),
        lambda i: pod(f"free-{i}", "three"),
        lambda i: pod(f"run-{i}", "three", cpu="3", node=f"n{i % 3}", ports=port if not i else ()),
        lambda i: pod(f"bound-{i}", "two", cpu="1", node=f"n{i % 3}", phase="Pending"),
    )
    made.feed(*(kind(i) for kind in kinds for i in range(4)))
    made.feed(pod("two-picky-0", "two", cpu="1"), pod("going-0", "one", cpu="1", node="n0", deleting=True))
    made.feed(pod("alien-0", scheduler="else", cpu="1", node="n1"))
    return made


class Game:
    """Interprets small numbers as operations on up to three statements of one session."""

    def __init__(self, made):
        self.cluster = made.cluster
        self.session = made.session()
        self.statements = [self.session.statement() for _ in range(3)]
        self.marks = []
        self.follower = made.scheduler.engine.plugins[1][2]
        self.start = self.taken()

    def taken(self):
        """What is allocated or waits in each queue, by resource."""
        sums = self.cluster.queue_sums
        rows = {
            name: self.cluster.vocabulary.amounts(sums.held(row)) for name, row in self.cluster.queue_sums.rows.items()
        }
        return {(queue, name): units for queue, amounts in rows.items() for name, units in amounts.items()}

    def some(self, statuses, first, count):
        """Some tasks in certain statuses, going round from one of them."""
        tasks = [task for task in self.cluster.tasks.values() if task.status in statuses and task.job is not None]
        return [tasks[(first + i) % len(tasks)] for i in range(min(count, len(tasks)))]

    def place(self, statement, a, b, c):
        tasks = self.some({Status.PENDING}, a, 1 + b)
        records = [self.cluster.nodes.records[(c + i * (b % 3)) % 3] for i in range(len(tasks))]
        step = statement.pipeline if c % 2 else statement.allocate
        stop = iter([False] * a + [True] * 99)
        if tasks:
            step(tasks, records, (lambda: next(stop)) if a % 3 == 0 else None)

    def evict(self, statement, a, b, _c):
        tasks = self.some({Status.RUNNING, Status.BOUND}, a, b)
        if tasks:
            statement.evict(tasks, "test")

    def mark(self, statement, *_):
        self.marks.append((statement, statement.checkpoint()))

    def rollback(self, _statement, *_):
        if self.marks:
            statement, mark = self.marks.pop()
            statement.rollback(mark)

    def undo(self, statement, a, *_):
        logged = [task for run in statement.runs for task in run.tasks]
        if logged:
            statement.undo(logged[a % len(logged)])

    def merge(self, statement, a, b, _c):
        others = [self.statements[(a + i) % 3] for i in range(b % 2 + 1)]
        statement.merge(*(other for other in others if other is not statement))

    def recover(self, statement, a, *_):
        saved = statement.save()
        statement.discard()
        assert self.statements[a % 3].recover(saved) or any("picky" in t.name for s in saved.steps for t in s[1])

    def hold(self, statement, *_):
        statement.keep()

    def release(self, _statement, a, *_):
        held = [task for run in self.session.statements.kept for task in run.tasks]
        if held:
            self.session.statements.release(held[a % len(held)])

    def discard(self, statement, *_):
        statement.discard()

    OPERATIONS = (place, place, place, evict, mark, rollback, undo, merge, recover, hold, release, discard)

    def play(self, move):
        operation, which, a, b, c = move
        self.OPERATIONS[operation](self, self.statements[which], a, b, c)


ANYTHING = st.randoms(use_true_random=True)


def moves(pick, most, *operations):
    """Some moves: an operation (of those given), a statement, three small numbers."""
    known = [i for i, each in enumerate(Game.OPERATIONS) if not operations or each in operations]
    numbers = [[pick.randint(0, 7) for _ in range(3)] for _ in range(pick.randint(0, most))]
    return [(pick.choice(known), pick.randint(0, 2), *three) for three in numbers]


@settings(max_examples=drawn(60), deadline=None)
@given(pick=ANYTHING, picky=st.booleans(), discards=st.booleans())
def test_statements_then_discard_and_rollback_restore_the_model_bit_for_bit(pick, picky, discards):
    made = desk(picky=picky)
    game = Game(made)
    before = recount.fingerprint(made.cluster)
    for move in moves(pick, 25):
        game.play(move)
        recount.check(made.cluster)
        change = {key: units - game.start.get(key, 0) for key, units in game.taken().items()}
        change |= {key: -units for key, units in game.start.items() if key not in game.taken()}
        assert game.follower.by_queue == {key: units for key, units in change.items() if units}
    for statement in game.statements if discards else ():
        statement.discard()
    game.session.rollback()
    assert recount.fingerprint(made.cluster) == before
    assert (game.follower.by_queue, game.follower.by_node, game.follower.placed) == ({}, {}, {})


@settings(max_examples=drawn(40), deadline=None)
@given(pick=ANYTHING, picky=st.booleans())
def test_rollback_to_a_checkpoint_restores_the_model_at_the_checkpoint(pick, picky):
    made = desk(picky=picky)
    game = Game(made)
    chosen, seen = game.statements[0], []
    for operation, _, a, b, c in moves(pick, 8, Game.place, Game.evict):
        seen.append((chosen.checkpoint(), recount.fingerprint(made.cluster)))
        Game.OPERATIONS[operation](game, chosen, a, b, c)
    for mark, before in reversed(seen):
        if pick.randint(0, 1):
            chosen.rollback(mark)
            assert recount.fingerprint(made.cluster) == before
    recount.check(made.cluster)


@settings(max_examples=drawn(40), deadline=None)
@given(pick=ANYTHING)
def test_undoing_all_but_one_task_leaves_exactly_that_one(pick):
    """Undo takes single tasks out of the middle, in any order, and disturbs no other."""
    made = desk(picky=False)
    game = Game(made)
    chosen = game.statements[0]
    game.place(chosen, 1, 0, 0)
    for _, _, a, b, c in moves(pick, 8, Game.place):
        game.place(chosen, a, b, c)
    placed = [task for run in chosen.runs for task in run.tasks]
    kept = pick.choice(placed)
    where = (kept.status, kept.node)
    for task in pick.sample(placed, len(placed)):
        if task is not kept:
            chosen.undo(task)
    assert [task for run in chosen.runs for task in run.tasks] == [kept]
    assert (kept.status, kept.node) == where
    recount.check(made.cluster)
    assert game.follower.placed == {kept.uid: 1}


class Fragile(Plugin):
    """Follows placements, and breaks down about one pod."""

    name = "picky"

    def open(self, session):
        session.add_handler(self.follow, one_job=True)

    def follow(self, run, sign):
        if sign < 0 and any(task.name == "run-1" for task in run.tasks):
            raise ValueError("no idea")


@pytest.mark.parametrize("at", range(4))
def test_where_a_handler_breaks_down_about_a_victim_those_after_it_stay_and_undoing_restores_all(at):
    made = desk(picky=True, picks=Fragile)
    game = Game(made)
    before = recount.fingerprint(made.cluster)
    others = ["bound-0", "bound-1", "bound-3"]
    named = [*others[:at], "run-1", *others[at:]]
    by_name = {task.name: task for task in made.cluster.tasks.values()}
    chosen = game.statements[0]
    with pytest.raises(PluginBreakdownError, match="no idea"):
        chosen.evict([by_name[name] for name in named], "test")
    going = [name for name in named if by_name[name].status == Status.RELEASING]
    assert going == named[: at + 1] == [task.name for run in chosen.runs for task in run.tasks]
    recount.check(made.cluster)
    chosen.discard()
    assert recount.fingerprint(made.cluster) == before


@settings(max_examples=drawn(30), deadline=None)
@given(pick=ANYTHING, picky=st.booleans())
def test_after_a_commit_only_what_is_bound_or_evicted_remains(pick, picky):
    made = desk(picky=picky)
    game = Game(made)
    for move in moves(pick, 15):
        game.play(move)
    for statement in game.statements:
        statement.commit()
    game.session.rollback()
    recount.check(made.cluster)
    bound = {task.name for task in made.cluster.tasks.values() if task.status == Status.BINDING}
    assert bound == set(made.world.binds)
    assert {task.status for task in made.cluster.tasks.values()} <= set(Status) - {Status.ALLOCATED, Status.PIPELINED}
    left = {task.name for task in made.cluster.tasks.values() if task.status in (Status.RELEASING, Status.EVICTING)} - {
        "going-0"
    }
    assert left == set(made.world.evictions)
    assert {made.cluster.tasks[uid].name for uid, sign in game.follower.placed.items() if sign > 0} == bound
    assert {made.cluster.tasks[uid].name for uid, sign in game.follower.placed.items() if sign < 0} == left


SUPPOSED = (Status.PENDING, Status.PIPELINED, Status.RUNNING, Status.BOUND)


def suppose(game, statement, pick):
    """Suppose that some tasks are something else, on a node that fits that, or on none."""
    known = [task for task in game.cluster.tasks.values() if task.job is not None and task.node is not None]
    known += [task for task in game.cluster.tasks.values() if task.status == Status.PENDING and task.job is not None]
    task, status = pick.choice(known), pick.choice(SUPPOSED)
    record = None if status == Status.PENDING else task.node or pick.choice(game.cluster.nodes.records)
    statement.suppose([task], [record], status)


def words(findings):
    """Everything that was said, in its order."""
    errors = {job: list(told.items()) for job, told in findings.fit_errors.items()}
    return errors, *(
        repr(getattr(findings, name)) for name in ("phases", "last_transactions", "attempted", "notices", "conditions")
    )


def speak(game, pick):
    """Say something about a job, or take it back."""
    findings, job = game.session.findings, pick.choice(list(game.cluster.jobs.values()))
    tasks = list(job.tasks.values())
    match pick.randint(0, 5):
        case 0:
            findings.note_fit(pick.sample(tasks, min(2, len(tasks))), FitSummary(0, (), f"reason {pick.random()}"))
        case 1:
            findings.forget_fit(job, pick.sample(tasks, min(2, len(tasks))))
        case 2:
            findings.forget_fit(job)
        case 3:
            findings.set_phase(job, pick.choice(["Inqueue", "Pending"]))
        case 4:
            findings.notice(job, "a notice")
        case _:
            game.session.record.judge(job.key, "test", f"verdict {pick.random()}")


@settings(max_examples=drawn(60), deadline=None)
@given(pick=ANYTHING)
def test_a_trial_takes_back_what_it_did_supposed_and_said(pick):
    made = desk(picky=False)
    game = Game(made)
    statement, record = game.statements[0], game.session.record
    for move in moves(pick, 6, Game.place, Game.evict):
        game.play(move)
    for _ in range(3):
        speak(game, pick)

    def everything():
        verdicts = {key: [(v.source, v.text) for v in record.verdicts(key)] for key in game.cluster.jobs}
        return recount.fingerprint(made.cluster), words(game.session.findings), verdicts, record.trace()

    def play(depth):
        before = everything()
        with statement.trial() as trial:
            for _ in range(pick.randint(1, 5)):
                pick.choice([lambda: suppose(game, statement, pick), lambda: speak(game, pick)])()
                recount.check(made.cluster)
                change = {key: units - game.start.get(key, 0) for key, units in game.taken().items()}
                change |= {key: -units for key, units in game.start.items() if key not in game.taken()}
                assert game.follower.by_queue == {key: units for key, units in change.items() if units}
                if depth < 3 and pick.randint(0, 2) == 0:
                    play(depth + 1)
            if depth and pick.randint(0, 1):
                trial.keep()
                return
        assert everything() == before

    play(0)
    play(0)


def test_what_is_only_supposed_is_never_sent():
    made = desk(picky=False)
    game = Game(made)
    statement = game.statements[0]
    task = game.some({Status.PENDING}, 0, 1)[0]
    statement.suppose([task], [made.cluster.nodes.records[0]], Status.RUNNING)
    for send in (statement.commit, statement.keep):
        with pytest.raises(RuntimeError, match=f"{task.key} is only supposed to be Running"):
            send()
    statement.discard()
    assert task.status == Status.PENDING
