"""The messages of the protocol: one module per API, found by its file name `api_NN_name.py`.

`MESSAGES[key]` gives the request and the response class of an API. The file names alone say which
keys there are; a module is imported when its key is first used, so that starting a broker does
not pay for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from tidelog.core.wire.schema import Message

_PREFIX = "api_"

Pair = tuple[type[Message], type[Message]]


class _Messages(Mapping[int, Pair]):
    """API key to (request, response), in the order of the keys; loaded on first use."""

    def __init__(self, modules: Mapping[int, str]) -> None:
        self._modules = modules
        self._loaded: dict[int, Pair] = {}

    def __getitem__(self, api_key: int) -> Pair:
        pair = self._loaded.get(api_key)
        if pair is None:
            pair = self._loaded[api_key] = _load(api_key, self._modules[api_key])
        return pair

    def __iter__(self) -> Iterator[int]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


def modules_by_api_key(folder: str) -> dict[int, str]:
    """The modules `api_NN_name` of a folder by their numbers, in order; each number once.

    The handlers of core/node/api are found in the same way.
    """
    names = [module.name for module in iter_modules([folder]) if module.name.startswith(_PREFIX)]
    found = {int(name.split("_")[1]): name for name in sorted(names)}
    assert len(found) == len(names), f"two modules for one API key in {folder}"
    return found


def _load(api_key: int, module_name: str) -> Pair:
    """`api_02_list_offsets` has `ListOffsetsRequest` and `ListOffsetsResponse`."""
    module = import_module(f"{__name__}.{module_name}")
    api_name = "".join(word.capitalize() for word in module_name.split("_")[2:])
    request: type[Message] = getattr(module, f"{api_name}Request")
    response: type[Message] = getattr(module, f"{api_name}Response")
    assert request.api_key == response.api_key == api_key, f"{module_name} has another API key"
    return request, response


MESSAGES: Final[Mapping[int, Pair]] = _Messages(modules_by_api_key(__path__[0]))
