"""What can be seen of a query without Spark: which views it reads, what it calls, what cannot be.

It knows no grammar, only brackets and the words that precede a relation. So it never refuses what
Spark would accept: whatever looks unusual is left to Spark. A full parser was tried (sqlglot 30.30)
and does not serve here:

1. Its Spark dialect cannot parse `GROUP BY window(time, '1 minute')`, the central query of streams.
2. It gives no positions for GROUP BY, ORDER BY, OVER, DISTINCT and current_timestamp, which our
   messages name with their lines.
3. It accepts `SELECT a, FROM v` and `SELECT FROM v`, and reads `TABLE v` as a column with an alias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tidelog.spark.pipeline.file.diagnostics import did_you_mean
from tidelog.spark.pipeline.file.sql_tokens import BadSql, Token, tokens_of

_BEGINNINGS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
_AFTER_FROM = """
    WHERE GROUP HAVING ORDER LIMIT UNION EXCEPT MINUS INTERSECT WINDOW SELECT CLUSTER DISTRIBUTE
    SORT OFFSET
"""
_ENDS_OF_FROM = frozenset(_AFTER_FROM.split())
_CLOSING = {"(": ")", "[": "]"}
_CALLED_WITHOUT_BRACKETS = (
    "CURRENT_TIMESTAMP",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "LOCALTIMESTAMP",
)
_RANDOM = """
    rand randn random uuid randstr uniform shuffle monotonically_increasing_id spark_partition_id
    input_file_name input_file_block_start input_file_block_length
"""
_CLOCK = "now current_timestamp current_date curdate current_time localtimestamp unix_timestamp"
_ORDER = """
    first first_value last last_value any_value collect_list collect_set array_agg listagg
    string_agg
"""
_ONLY_WITHOUT_ARGUMENTS = ("unix_timestamp",)
"""With arguments their result depends on nothing else."""

_NONDETERMINISTIC = {
    **dict.fromkeys(
        _RANDOM.split(),
        "returns other values when a task is retried or another sink computes it: rows of one"
        " batch may contradict each other",
    ),
    **dict.fromkeys(
        _CLOCK.split(),
        "is the time of the batch: the same when a batch is retried, but different in every sink"
        " and when the checkpoint is deleted",
    ),
    **dict.fromkeys(
        _ORDER.split(),
        "depends on the order in which rows arrive, which may differ when a batch is retried",
    ),
}


class Relation(NamedTuple):
    """A relation by its name, in parts: `orders`, or parquet.`/some/path`."""

    parts: tuple[str, ...]
    line: int


class FunctionCall(NamedTuple):
    """A function by its lower-case name, and whether it has arguments."""

    name: str
    line: int
    has_arguments: bool


@dataclass(eq=False)
class QueryBlock:
    """The text between two brackets, or all of it: a query, or anything else."""

    kind: Literal["query", "relation", "expression"]
    opened: Token | None = None
    reads: list[Relation] = field(default_factory=list)
    inner: list[QueryBlock] = field(default_factory=list)
    named: dict[str, QueryBlock | None] = field(default_factory=dict)
    """The queries of its WITH by name."""
    grouped_at: int | None = None
    """GROUP BY, or SELECT DISTINCT, which is the same to Spark."""
    ordered_at: int | None = None
    windowed_at: int | None = None
    # While reading.
    expects_relation: bool = False
    is_in_from: bool = False
    is_in_with: bool = False
    expects_name: bool = False
    last_named: str | None = None

    def is_like_query(self) -> bool:
        return self.kind != "expression"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """Relations, calls and blocks of one query."""

    root: QueryBlock
    reads: tuple[Relation, ...]
    """Without the names that its own WITH defines."""
    calls: tuple[FunctionCall, ...]

    def streams(self, is_stream: Callable[[str], bool]) -> list[QueryBlock]:
        """Its queries that read a stream, directly or from within."""
        found: list[QueryBlock] = []
        _collect_streams(self.root, is_stream, {}, found)
        return found


def query_shape(sql: str) -> QueryShape:
    """BadSql if it cannot be a query."""
    tokens = tokens_of(sql)
    while tokens and tokens[-1].is_symbol(";"):
        tokens.pop()
    _check_beginning(tokens)
    walk = _Walk(tokens)
    walk.walk()
    return QueryShape(root=walk.root, reads=tuple(walk.free_reads), calls=tuple(walk.calls))


def _check_beginning(tokens: list[Token]) -> None:
    if not tokens:
        raise BadSql(0, "is empty; expected a query: SELECT ... FROM ...")
    first = tokens[0]
    if not first.is_word(*_BEGINNINGS) and not first.is_symbol("("):
        near = did_you_mean(first.text, _BEGINNINGS[:2])
        raise BadSql(first.line, f"begins with {first.text!r}; expected SELECT or WITH{near}")
    for token in tokens:
        if token.is_symbol(";"):
            raise BadSql(token.line, "is more than one statement; a step is one query")


class _Walk:
    """From left to right, with a stack of brackets."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.root = QueryBlock("query")
        self.stack = [self.root]
        self.calls: list[FunctionCall] = []
        self.free_reads: list[Relation] = []
        self._at = 0

    def walk(self) -> None:
        self.root.expects_relation = self.tokens[0].is_word("TABLE")
        while self._at < len(self.tokens):
            token = self.tokens[self._at]
            if token.kind == "symbol":
                self._on_symbol(token)
            elif token.kind in ("word", "name"):
                self._on_word(token)
            self._at += 1
        if len(self.stack) > 1:
            opened = self.stack[-1].opened
            assert opened is not None
            raise BadSql(opened.line, f"the {opened.text!r} here is never closed")
        self._check_end(self.tokens[-1])

    def _on_symbol(self, token: Token) -> None:
        block = self.stack[-1]
        if token.text in _CLOSING:
            self._open(token)
        elif token.text in _CLOSING.values():
            self._close(token)
        elif token.text == "," and block.is_in_with:
            block.expects_name = True
        elif token.text == ",":
            following = self._token(1)
            if following is not None and following.is_word("FROM", "WHERE"):
                raise BadSql(token.line, f"a column is missing between ',' and {following.text}")
            block.expects_relation = block.is_in_from and block.is_like_query()
        elif token.text == "|>":
            block.is_in_from = block.expects_relation = False

    def _open(self, token: Token) -> None:
        block, following = self.stack[-1], self._token(1)
        inner = QueryBlock("expression", opened=token)
        if following is not None and following.is_word(*_BEGINNINGS):
            inner.kind = "query"
            inner.expects_relation = following.is_word("TABLE")
        elif block.expects_relation:
            inner.kind = "relation"
            inner.expects_relation = inner.is_in_from = True
        elif self._is_bracketed_query():
            inner.kind = "query"
        if block.last_named is not None and inner.kind == "query":
            block.named[block.last_named] = inner
            block.last_named = None
        block.expects_relation = False
        block.inner.append(inner)
        self.stack.append(inner)

    def _is_bracketed_query(self) -> bool:
        """`((SELECT ...) UNION ...)`: only brackets between here and the query's first word."""
        ahead = 1
        while (token := self._token(ahead)) is not None and token.is_symbol("("):
            ahead += 1
        return ahead > 1 and token is not None and token.is_word(*_BEGINNINGS)

    def _close(self, token: Token) -> None:
        opened = self.stack[-1].opened
        if opened is None or _CLOSING[opened.text] != token.text:
            raise BadSql(token.line, f"the {token.text!r} here closes nothing")
        self.stack.pop()

    def _on_word(self, token: Token) -> None:
        block = self.stack[-1]
        if block.expects_name and not token.is_word("RECURSIVE"):
            block.expects_name = False
            block.named[token.text.lower()] = None
            block.last_named = token.text.lower()
            return
        if block.expects_relation and self._on_relation(block, token):
            return
        if token.kind == "word" and block.is_like_query():
            self._on_keyword(block, token)
        self._note_call(token)

    def _on_relation(self, block: QueryBlock, token: Token) -> bool:
        """Returns whether the word was the name of a relation, or precedes one."""
        following = self._token(1)
        is_name_next = following is not None and following.kind in ("word", "name")
        if token.is_word("LATERAL", "TABLE") or (token.is_word("STREAM") and is_name_next):
            return True
        block.expects_relation = False
        if token.is_word("SELECT", "VALUES", "WITH"):
            return False
        parts = [token.text]
        while self._is_symbol(1, ".") and (name := self._token(2)) is not None:
            parts.append(name.text)
            self._at += 2
        if self._is_symbol(1, "("):  # a function that gives a table
            self.calls.append(FunctionCall(parts[-1].lower(), token.line, self._has_arguments()))
            return True
        read = Relation(tuple(parts), token.line)
        block.reads.append(read)
        if len(parts) > 1 or not any(token.text.lower() in each.named for each in self.stack):
            self.free_reads.append(read)
        return True

    def _on_keyword(self, block: QueryBlock, token: Token) -> None:
        word = token.text.upper()
        if word == "WITH" and not block.named and self._begins(block):
            block.is_in_with = block.expects_name = True
        elif word == "FROM" and not self._is_distinct_from():
            block.is_in_with = False
            block.is_in_from = block.expects_relation = True
        elif word == "JOIN":
            block.expects_relation = True
        elif word == "LATERAL" and self._is_word(1, "VIEW"):
            block.is_in_from = False
        elif word in _ENDS_OF_FROM:
            block.is_in_from = False
            block.is_in_with = block.is_in_with and word != "SELECT"
            if word == "SELECT" and self._is_word(1, "FROM"):
                raise BadSql(token.line, "SELECT names no column; expected SELECT column FROM ...")
            if (word == "GROUP" and self._is_word(1, "BY")) or (
                word == "SELECT" and self._is_word(1, "DISTINCT")
            ):
                block.grouped_at = token.line
            if word == "ORDER" and self._is_word(1, "BY"):
                block.ordered_at = token.line
        elif word == "OVER" and (self._is_symbol(1, "(") or self._is_name(1)):
            block.windowed_at = token.line

    def _note_call(self, token: Token) -> None:
        before = self._token(-1)
        if before is not None and before.is_symbol("."):
            return
        name = token.text.lower()
        if self._is_symbol(1, "("):
            self.calls.append(FunctionCall(name, token.line, self._has_arguments()))
        elif token.is_word(*_CALLED_WITHOUT_BRACKETS):
            self.calls.append(FunctionCall(name, token.line, False))

    def _is_distinct_from(self) -> bool:
        """`a IS [NOT] DISTINCT FROM b` names no relation."""
        return self._is_word(-1, "DISTINCT") and (
            self._is_word(-2, "IS") or (self._is_word(-2, "NOT") and self._is_word(-3, "IS"))
        )

    def _begins(self, block: QueryBlock) -> bool:
        before = self._token(-1)
        return before is None or before is block.opened

    def _check_end(self, token: Token) -> None:
        wants = ("SELECT", "FROM", "JOIN", "WHERE", "BY", "AND", "OR", "ON", "HAVING", "UNION")
        if token.is_symbol(",") or token.is_word(*wants):
            raise BadSql(token.line, f"ends with {token.text!r}; something is missing after it")

    def _token(self, ahead: int) -> Token | None:
        index = self._at + ahead
        return self.tokens[index] if 0 <= index < len(self.tokens) else None

    def _is_word(self, ahead: int, word: str) -> bool:
        token = self._token(ahead)
        return token is not None and token.is_word(word)

    def _is_symbol(self, ahead: int, symbol: str) -> bool:
        token = self._token(ahead)
        return token is not None and token.is_symbol(symbol)

    def _is_name(self, ahead: int) -> bool:
        token = self._token(ahead)
        return token is not None and token.kind in ("word", "name") and not token.is_word("FROM")

    def _has_arguments(self) -> bool:
        return not self._is_symbol(2, ")")


def _collect_streams(
    block: QueryBlock,
    is_stream: Callable[[str], bool],
    named: dict[str, bool],
    found: list[QueryBlock],
) -> bool:
    """Returns whether it reads a stream. Names of a WITH are known to the blocks inside."""
    known = dict(named)
    for name, defined in block.named.items():
        known[name] = defined is not None and _collect_streams(defined, is_stream, known, found)
    defined_blocks = [each for each in block.named.values() if each is not None]
    inside = [
        _collect_streams(each, is_stream, known, found)
        for each in block.inner
        if not any(each is other for other in defined_blocks)
    ]
    own = [
        known.get(read.parts[0].lower(), is_stream(read.parts[0]))
        for read in block.reads
        if len(read.parts) == 1
    ]
    if any(inside) or any(own):
        found.append(block)
        return True
    return False


def nondeterminism(call: FunctionCall) -> str | None:
    """A warning if the result differs when a batch is computed again; None if it does not."""
    if call.name in _ONLY_WITHOUT_ARGUMENTS and call.has_arguments:
        return None
    why = _NONDETERMINISTIC.get(call.name)
    return None if why is None else f"{call.name}() {why}"
