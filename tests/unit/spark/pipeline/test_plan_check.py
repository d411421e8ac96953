"""Every mistake in a file is found at once, with its line, its key and what is expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spark.pipeline.good_file import GOOD, checked
from tidelog.spark import pipeline
from tidelog.spark.pipeline.file.plan import TableTarget, TopicTarget

EXAMPLES = Path(__file__).parents[4] / "examples"


def error_lines(text: str) -> list[str]:
    return [each.as_line("p.toml") for each in checked(text).errors]


def test_a_good_file_has_a_plan_and_nothing_to_say() -> None:
    found = checked(GOOD)
    assert found.diagnostics == ()
    plan = found.plan_or_raise()
    assert (plan.name, plan.checkpoint, plan.trigger_ms) == ("p", "/base/state", 5_000)
    (source,) = plan.sources
    assert source.topics == ("orders",)
    assert [each.name for each in source.columns or ()] == ["order_id", "amount", "ordered_at"]
    assert source.options == {"startingOffsets": "earliest"}
    (step,) = plan.steps
    assert step.watermark is not None
    assert (step.watermark.column, step.watermark.delay_ms) == ("ordered_at", 600_000)
    (sink,) = plan.sinks
    assert (sink.view, sink.target) == ("valid", TableTarget(path="/base/out/valid"))
    assert plan.dead_letters == TableTarget(path="/base/out/dead")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_examples_are_good(path: Path) -> None:
    assert pipeline.check(path).diagnostics == ()


CASES = [
    # (what is replaced, by what, the expected)
    ('checkpoint = "state"', "", ":1: checkpoint: is missing; expected a directory"),
    (
        'checkpoint = "state"',
        "checkpoint = 5",
        ":1: checkpoint: expected a string in quotes, not 5",
    ),
    ('checkpoint = "state"', 'checkpont = "state"', ":1: checkpont: is not known here; did you"),
    ('checkpoint = "state"', 'checkpoint = ""', ":1: checkpoint: is empty"),
    ('"5s"', '"5 parsecs"', ":2: trigger: '5 parsecs' is not a duration; expected a duration like"),
    ('"5s"', '"available_now"', ":2: trigger: 'available_now' is not known; expected"),
    ('"5s"', "5", ':2: trigger: expected "available-now", "continuous", or a duration'),
    (
        "[sources.orders]",
        "[source.orders]",
        ":3: source: is not known here; did you mean 'sources'",
    ),
    (
        "[sources.orders]",
        "[sources.or-ders]",
        ":3: sources.or-ders: 'or-ders' is not a valid view name",
    ),
    ('topic = "orders"', "", ":3: sources.orders.topic: is missing; expected topic ="),
    ('topic = "orders"', 'topc = "orders"', ":4: sources.orders.topc: is not known here; did you"),
    (
        'topic = "orders"',
        'topic = ["orders"]',
        ":4: sources.orders.topic: expected a string in quo",
    ),
    ('topic = "orders"', 'topic = "or ders"', ":4: sources.orders.topic: a topic name has only"),
    (
        'topic = "orders"',
        'topics = "orders"',
        ":4: sources.orders.topics: expected a list of strings",
    ),
    (
        'topic = "orders"',
        'pattern = "or(ders"',
        ":4: sources.orders.pattern: 'or(ders' is not a reg",
    ),
    (
        'topic = "orders"',
        'topic = "orders"\npattern = "o.*"',
        ":5: sources.orders.pattern: is given together with topic; expected only one of them",
    ),
    (
        'topic = "orders"',
        'topic = "orders"\nbootstrap = "localhost"',
        ":5: sources.orders.bootstrap: 'localhost' is not a broker address; expected HOST:PORT",
    ),
    (
        'topic = "orders"',
        'topic = "orders"\nformat = "jsn"',
        ":5: sources.orders.format: 'jsn' is not known; expected json or raw; did you mean 'json'?",
    ),
    (
        'topic = "orders"',
        'topic = "orders"\nstarting_offsets = "earlest"',
        ":5: sources.orders.starting_offsets: 'earlest' is not known; expected \"earliest\",",
    ),
    (
        'topic = "orders"',
        'topic = "orders"\nmax_offsets_per_trigger = true',
        ":5: sources.orders.max_offsets_per_trigger: expected a whole number, more than 0",
    ),
    (
        'topic = "orders"',
        'topic = "orders"\noptions.maxOffsetsPerTrigger = 5',
        ":5: sources.orders.options.maxOffsetsPerTrigger: has a key of its own: max_offsets_per",
    ),
    (
        "amount INT,",
        "amount INTT,",
        ":7: sources.orders.schema: column 'amount': 'INTT' is not a Spark type",
    ),
    ("amount INT,", "_offset INT,", ":5: sources.orders.schema: column '_offset' would hide"),
    ("[steps.valid]", "[steps.ORDERS]", ":10: steps.ORDERS: the name is taken by [sources.orders]"),
    ("[steps.valid]", "[steps.orders]", ":10: steps.orders: the name is taken by [sources.orders]"),
    (
        "FROM orders",
        "FROM ordres",
        ":13: steps.valid.sql: reads 'ordres', which is not a source or a",
    ),
    ("FROM orders", "FROM valid", ":13: steps.valid.sql: reads itself"),
    ("SELECT *", "SELECT (*", ":12: steps.valid.sql: the '(' here is never closed"),
    ("WHERE amount > 0", "ORDER BY amount", ":14: steps.valid.sql: ORDER BY is not possible"),
    (
        "SELECT *",
        "SELECT lag(amount) OVER (ORDER BY amount)",
        ":12: steps.valid.sql: OVER (...) is not possible on a stream",
    ),
    (
        "column =",
        "colum =",
        ":16: steps.valid.watermark.colum: is not known here; did you mean 'co",
    ),
    ("column =", "colum =", ":16: steps.valid.watermark.column: is missing; expected watermark ="),
    (
        '"10 minutes"',
        '"10 minuts"',
        ":16: steps.valid.watermark.delay: '10 minuts' is not a duration",
    ),
    (
        '{ column = "ordered_at", delay = "10 minutes" }',
        '"x"',
        ":16: steps.valid.watermark: expected",
    ),
    (
        'watermark = { column = "ordered_at", delay = "10 minutes" }\n',
        "",
        ":16: steps.valid.deduplicate: needs a watermark here or in an earlier",
    ),
    ('["order_id"]', '"order_id"', ":17: steps.valid.deduplicate: expected a list of strings like"),
    ('["order_id"]', "[]", ":17: steps.valid.deduplicate: is empty"),
    ('["order_id"]', '["a", "a"]', ":17: steps.valid.deduplicate: names 'a' twice"),
    (
        "[sinks.valid]",
        "[sinks.other]",
        ":18: sinks.other.from: is missing; expected a view: orders",
    ),
    (
        "[sinks.valid]",
        "[sinks.dead_letters]",
        ":18: sinks.dead_letters: 'dead_letters' is not a valid",
    ),
    (
        'table = "out/valid"',
        'from = "vlid"\ntable = "x"',
        ":19: sinks.valid.from: 'vlid' is not a source or a step; did you mean 'valid'?",
    ),
    ('table = "out/valid"', "", ":18: sinks.valid.table: is missing; expected table ="),
    (
        'table = "out/valid"',
        'table = "x"\ntopic = "y"',
        ":20: sinks.valid.topic: is given together with table; expected only one of them",
    ),
    ('table = "out/valid"', 'topic = "y"', ":18: sinks.valid.id: is missing; exactly-once writing"),
    (
        'table = "out/valid"',
        'topic = "y"\nid = "a b"',
        ":20: sinks.valid.id: 'a b' is not a valid id",
    ),
    (
        'table = "out/valid"',
        'topic = "y"\nid = "x"\noptions.compresion = "lz4"',
        ":21: sinks.valid.options.compresion: is not an option of a topic; did you mean 'compress",
    ),
    (
        'table = "out/valid"',
        'topic = "y"\nid = "x"\noptions = { writers = "many" }',
        ":21: sinks.valid.options.writers: expected a whole number, not 'many'",
    ),
    (
        'table = "out/valid"',
        'topic = "orders"\nid = "x"',
        ":19: sinks.valid.topic: [sources.orders]",
    ),
    ('table = "out/valid"', 'table = "x"\nid = "x"', ":20: sinks.valid.id: is only for topics"),
    (
        'table = "out/valid"',
        'topic = "y"\nid = "x"\npartition_by = ["a"]',
        ":21: sinks.valid.partition_by: is only for tables",
    ),
    (
        'table = "out/valid"',
        'table = "x"\npartition_by = ["batch_id"]',
        ":20: sinks.valid.partition_by: 'batch_id' is already how tables are divided",
    ),
    ('table = "out/valid"', 'table = "out/dead"', ":21: dead_letters.table: is in the same dir"),
    (
        'table = "out/valid"',
        'table = "out/dead/x"',
        ":21: dead_letters.table: is in the same dir",
    ),
    ('table = "out/valid"', 'table = "state/x"', ":19: sinks.valid.table: shares a directory with"),
    ('table = "out/valid"', 'table = "s3a://b/x"', ":19: sinks.valid.table: s3a cannot rename"),
    (
        'table = "out/valid"',
        'table = "x"\nmode = "complete"',
        ":20: sinks.valid.mode: 'complete' is",
    ),
    (
        "[sinks.valid]",
        "[sinks]",
        ":19: sinks.table: is not in a named table; expected it below",
    ),
    (
        '[dead_letters]\ntable = "out/dead"\n',
        "",
        ":3: sources.orders.bad_records: is missing, and records that cannot be parsed need",
    ),
    ('table = "out/dead"', 'topic = "d"', ":20: dead_letters.id: is missing"),
    ('table = "out/dead"', 'table = "x"\nmode = "append"', ":22: dead_letters.mode: is not known"),
]


@pytest.mark.parametrize(("old", "new", "expected"), CASES, ids=[each[2] for each in CASES])
def test_a_mistake_is_named_with_line_and_key(old: str, new: str, expected: str) -> None:
    assert GOOD.count(old) >= 1
    found = error_lines(GOOD.replace(old, new, 1))
    assert any(each.startswith("p.toml" + expected) for each in found), found


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    text = (
        GOOD.replace('"5s"', '"5 parsecs"')
        .replace("amount INT", "amount NUMBER")
        .replace("FROM orders", "FROM ordres")
        .replace('["order_id"]', '"order_id"')
        .replace('table = "out/valid"', "tabel = 1")
    )
    lines = [int(each.split(":")[1]) for each in error_lines(text)]
    assert lines == sorted(lines)
    assert set(lines) == {2, 7, 13, 17, 18, 19}


def test_two_sinks_may_not_share_an_id() -> None:
    text = GOOD + (
        '[sinks.a]\nfrom = "valid"\ntopic = "a"\nid = "same"\n'
        '[sinks.b]\nfrom = "valid"\ntopic = "b"\nid = "same"\n'
    )
    assert error_lines(text) == ["p.toml:29: sinks.b.id: 'same' is already the id of [sinks.a]"]


def test_a_circle_is_named() -> None:
    text = GOOD + (
        '[steps.a]\nsql = "SELECT * FROM c"\n'
        '[steps.b]\nsql = "SELECT * FROM a"\n'
        '[steps.c]\nsql = "SELECT * FROM b"\n'
    )
    assert error_lines(text) == ["p.toml:23: steps.a.sql: reads in a circle: a -> c -> b -> a"]


def test_a_step_reads_only_what_stands_before_it() -> None:
    text = GOOD + '[steps.a]\nsql = "SELECT * FROM b"\n[steps.b]\nsql = "SELECT * FROM valid"\n'
    assert error_lines(text) == [
        "p.toml:23: steps.a.sql: reads 'b', which comes later; put [steps.b] before it"
    ]


def test_a_group_that_is_appended_needs_a_watermark() -> None:
    grouped = "SELECT amount, count(*)\nFROM orders\nGROUP BY amount"
    without = GOOD.replace("SELECT *\nFROM orders\nWHERE amount > 0", grouped)
    without = without.replace('deduplicate = ["order_id"]\n', "")
    (expected,) = error_lines(without)
    assert expected.startswith("p.toml:14: steps.valid.sql: GROUP BY (or DISTINCT) needs a waterm")
    (expected,) = error_lines(
        without.replace("GROUP BY amount", "").replace("SELECT", "SELECT DISTINCT")
    )
    assert expected.startswith("p.toml:12: steps.valid.sql: GROUP BY (or DISTINCT) needs a waterm")
    updated = without.replace('table = "out/valid"', 'table = "out/valid"\nmode = "update"')
    assert error_lines(updated) == []
    after = GOOD + f"[steps.g]\nsql = '''{grouped.replace('orders', 'valid')}'''\n"
    assert error_lines(after + '[sinks.g]\ntable = "g"\n') == []


@pytest.mark.parametrize("word", ["rand()", "uuid()", "current_timestamp", "now()", "first(a)"])
def test_what_is_not_the_same_twice_is_warned_of(word: str) -> None:
    found = checked(GOOD.replace("SELECT *", f"SELECT {word}, *"))
    assert found.errors == []
    (warning,) = found.warnings
    assert (warning.line, warning.key) == (12, "steps.valid.sql")
    assert warning.as_line("p.toml").startswith("p.toml:12: steps.valid.sql: warning: ")


def test_what_no_sink_needs_is_warned_of() -> None:
    found = checked(GOOD + '[steps.more]\nsql = "SELECT rand() FROM valid"\n')
    assert [each.as_line("p.toml") for each in found.warnings] == [
        "p.toml:22: steps.more: warning: no sink needs it, so it does not run"
    ]


def test_topics_and_settings_are_understood() -> None:
    text = GOOD.replace(
        'table = "out/valid"',
        'topic = "valid"\nid = "p-valid"\nkey = "order_id"\nbootstrap = "other:9092"\n'
        'options = { writers = 2, "kafka.linger.ms" = 5 }',
    )
    text = (
        'spark.sql.shuffle.partitions = 4\nbootstrap = "a:1,[::1]:2"\nmaster = "local[2]"\n' + text
    )
    plan = checked(text).plan_or_raise()
    assert plan.spark == {"spark.sql.shuffle.partitions": "4"}
    assert (plan.bootstrap, plan.master) == ("a:1,[::1]:2", "local[2]")
    assert plan.sinks[0].target == TopicTarget(
        topic="valid",
        sink_id="p-valid",
        bootstrap="other:9092",
        key="order_id",
        options={"writers": 2, "settings": {"linger.ms": "5"}},
    )


def test_source_keys_become_options_by_sparks_names() -> None:
    text = GOOD.replace(
        'topic = "orders"',
        'topics = ["a", "b"]\nmax_offsets_per_trigger = 500\nfail_on_data_loss = false\n'
        'starting_offsets = "latest"\noptions = { "kafka.client.id" = "x" }',
    )
    (source,) = checked(text).plan_or_raise().sources
    assert source.topics == ("a", "b")
    assert source.options == {
        "startingOffsets": "latest",
        "maxOffsetsPerTrigger": "500",
        "failOnDataLoss": "false",
        "kafka.client.id": "x",
    }


def test_a_mapping_is_checked_by_the_same_rules() -> None:
    plan = {
        "checkpoint": "/state",
        "sources": {"raw": {"topic": "orders"}},
        "steps": {"made": {"function": lambda views: views["raw"]}},
        "sinks": {"made": {"table": "/out", "mod": "append"}},
    }
    found = pipeline.check(plan)
    assert [each.as_line("plan") for each in found.errors] == [
        "plan: sinks.made.mod: is not known here; did you mean 'mode'?"
    ]
    with pytest.raises(pipeline.BadPlan, match=r"sinks\.made\.mod"):
        found.plan_or_raise()


def test_a_function_in_a_file_is_refused() -> None:
    found = error_lines(GOOD.replace("deduplicate", 'function = "f"\ndeduplicate'))
    assert any("which only a plan in Python can have" in each for each in found)


@given(st.data())
def test_a_good_file_with_something_cut_out_is_still_judged(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(GOOD)))
    end = data.draw(st.integers(start, min(len(GOOD), start + 80)))
    pasted = data.draw(st.text(alphabet="[]{}=\"'\n ax.,#5", max_size=6))
    found = checked(GOOD[:start] + pasted + GOOD[end:])
    assert (found.plan is None) == bool(found.errors)


@given(st.text(max_size=60))
def test_any_text_is_judged(text: str) -> None:
    assert checked(text).plan is None
