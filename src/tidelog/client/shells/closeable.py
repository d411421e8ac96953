"""What every shell over sockets has in common: `with` closes it, however the block ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closeable(ABC):
    """Whoever has connections; closing twice does no harm."""

    @abstractmethod
    def close(self) -> None:
        """Drop the connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
