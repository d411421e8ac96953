"""The few file operations that a table and a checkpoint need, on this machine or through Hadoop."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Store(Protocol):
    """Paths are strings with slashes, as in Spark."""

    def names(self, directory: str) -> list[str]:
        """What is in it; nothing if it is not there."""
        ...

    def read(self, path: str) -> str | None:
        """None if it is not there."""
        ...

    def write(self, path: str, text: str) -> None: ...

    def remove(self, path: str) -> None:
        """A file or a whole directory, if it is there."""
        ...

    def make(self, directory: str) -> None:
        """With everything above it."""
        ...

    def files(self, directory: str) -> list[str]:
        """Every file below it that readers would see, by its whole path."""
        ...

    def sync(self, path: str) -> None:
        """Make a file or a whole directory survive a power loss."""
        ...

    def publish(self, staged: str, published: str) -> None:
        """Rename in one step, and never over something: FileExistsError if it exists already."""
        ...


class LocalStore:
    """Files of this machine, synced: Spark alone would leave them to the page cache."""

    def names(self, directory: str) -> list[str]:
        try:
            return sorted(os.listdir(directory))
        except FileNotFoundError:
            return []

    def read(self, path: str) -> str | None:
        try:
            return Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, path: str, text: str) -> None:
        Path(path).write_text(text, encoding="utf-8")

    def remove(self, path: str) -> None:
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.unlink(path)

    def make(self, directory: str) -> None:
        missing = [
            each for each in (Path(directory), *Path(directory).parents) if not each.exists()
        ]
        Path(directory).mkdir(parents=True, exist_ok=True)
        for each in reversed(missing):
            _sync_one(str(each.parent))

    def files(self, directory: str) -> list[str]:
        found = sorted(
            os.path.join(where, name) for where, _, names in os.walk(directory) for name in names
        )
        return [path for path in found if not os.path.basename(path).startswith((".", "_"))]

    def sync(self, path: str) -> None:
        for where, _, names in os.walk(path):
            for name in names:
                _sync_one(os.path.join(where, name))
            _sync_one(where)
        if os.path.isfile(path):
            _sync_one(path)
        _sync_one(os.path.dirname(path))

    def publish(self, staged: str, published: str) -> None:
        try:
            # A directory that is not empty is never replaced: rename(2) refuses.
            os.rename(staged, published)
        except OSError as error:
            if os.path.exists(published):
                raise FileExistsError(published) from error
            raise
        _sync_one(os.path.dirname(published))


def _sync_one(path: str) -> None:
    opened = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


class HadoopStore:
    """Whatever Spark's JVM can reach: hdfs://, abfs://; it syncs by its own rules."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._gateway: Any = spark.sparkContext._gateway
        self._settings: Any = spark._jsc.hadoopConfiguration()

    def names(self, directory: str) -> list[str]:
        files, path = self._open(directory)
        if not files.exists(path):
            return []
        return sorted(each.getPath().getName() for each in files.listStatus(path))

    def read(self, path: str) -> str | None:
        files, where = self._open(path)
        if not files.exists(where):
            return None
        stream = files.open(where)
        try:
            content = self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)
        finally:
            stream.close()
        return bytes(content).decode("utf-8")

    def write(self, path: str, text: str) -> None:
        files, where = self._open(path)
        stream = files.create(where, True)
        try:
            stream.write(bytearray(text.encode("utf-8")))
        finally:
            stream.close()

    def remove(self, path: str) -> None:
        files, where = self._open(path)
        files.delete(where, True)

    def make(self, directory: str) -> None:
        files, where = self._open(directory)
        files.mkdirs(where)

    def files(self, directory: str) -> list[str]:
        files, where = self._open(directory)
        found: list[str] = []
        walk = files.listFiles(where, True)
        while walk.hasNext():
            path = walk.next().getPath()
            if not path.getName().startswith((".", "_")):
                found.append(path.toString())
        return sorted(found)

    def sync(self, path: str) -> None:
        """A closed file of HDFS is on its data nodes, which is what its users rely on."""

    def publish(self, staged: str, published: str) -> None:
        hadoop = self._jvm.org.apache.hadoop.fs
        # FileSystem.rename would move it *into* a directory that is already there.
        context = hadoop.FileContext.getFileContext(self._settings)
        options = self._gateway.new_array(getattr(hadoop, "Options$Rename"), 0)
        try:
            context.rename(hadoop.Path(staged), hadoop.Path(published), options)
        except Exception as error:
            if self._open(published)[0].exists(hadoop.Path(published)):
                raise FileExistsError(published) from error
            raise

    def _open(self, path: str) -> tuple[Any, Any]:
        where = self._jvm.org.apache.hadoop.fs.Path(path)
        return where.getFileSystem(self._settings), where


def store_for(path: str, spark: SparkSession) -> Store:
    """Local paths have no scheme: the plan has taken `file:` away."""
    return LocalStore() if path.startswith("/") else HadoopStore(spark)
