"""Tables do the same through Hadoop's file systems as on this machine's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidelog.spark.pipeline.table.ledger import BatchOffer, TableRefused
from tidelog.spark.pipeline.table.stores import HadoopStore, LocalStore, store_for
from tidelog.spark.pipeline.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_path_decides_who_keeps_it(spark: SparkSession) -> None:
    assert isinstance(store_for("/data/orders", spark), LocalStore)
    assert isinstance(store_for("hdfs://name/data/orders", spark), HadoopStore)


@pytest.mark.long
def test_hadoop_publishes_whole_batches_and_never_over_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = HadoopStore(spark)
    path = f"file://{tmp_path}/table"

    def count(files: Sequence[str]) -> int:
        return spark.read.parquet(*files).count() if files else 0

    def write(rows: int) -> Callable[[str], None]:
        return lambda path: spark.range(rows).write.parquet(path)

    def offer(batch_id: int) -> BatchOffer:
        return BatchOffer(query_id="q", batch_id=batch_id, fingerprint=f"f{batch_id}")

    def table(run_id: str) -> Table:
        return Table(path, store=store, run_id=run_id, count=count)

    table("first").open()
    made = table("first").publish(offer(0), write=write(5), before_commit=lambda: None)
    assert (made.is_new, made.row.rows) == (True, 5)
    again = table("second").publish(offer(0), write=write(7), before_commit=lambda: None)
    assert (again.is_new, again.row) == (False, made.row)

    def overtaken() -> None:
        table("quick").publish(offer(1), write=write(2), before_commit=lambda: None)

    with pytest.raises(TableRefused, match="another run writes to this table"):
        table("slow").publish(offer(1), write=write(3), before_commit=overtaken)
    assert spark.read.parquet(path).groupBy("batch_id").count().orderBy("batch_id").collect() == [
        (0, 5),
        (1, 2),
    ]
    assert store.read(f"{path}/none") is None
    assert store.names(f"{path}/none") == []
    table("third").open()
    assert "_staging" not in store.names(path)
