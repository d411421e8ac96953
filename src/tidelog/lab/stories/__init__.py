"""The stories, one module for each group of scenarios; importing this package imports them all."""

from importlib import import_module
from pkgutil import iter_modules

for _module in sorted(each.name for each in iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")
