"""Groups of commands that are imported and built only when they are needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info, get_command_name, get_group
from typer.models import CommandInfo

#: The heading that help lists rarer commands under, below the others.
ADVANCED: Final = "Advanced"


class _Reading:
    """Parses a parameter as Typer would, without Pydantic where that is equivalent.

    Typer imports Pydantic even to parse a text, which takes longer than all else that
    it does.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return a value as the type of its parameter."""
        kind = param.type_descriptor.annotation
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        if kind == list[str] and several and not isinstance(value, str):
            if all(isinstance(one, str) for one in value):
                return list(value)
        elif not several and type(value) in {str, kind}:
            if kind is Path and _is_plain(value, param.type_descriptor.parameter_info):
                return Path(value)
            # Typed values are text, and other values are defaults.
            if kind is str or (type(value) is not str and kind is not Path):
                return value
        from typer import _coercion

        return _coercion.build_runtime_param(param.type_descriptor).coerce(
            value, param, ctx
        )


def _is_plain(path: str | Path, info: Any) -> bool:
    """Return whether any path will do, and this one can be read or is not there."""
    is_path = info.exists or info.resolve_path or info.writable or info.path_type
    anything = info.file_okay and info.dir_okay and not is_path and info.parser is None
    return bool(anything) and (os.access(path, os.R_OK) or not os.path.lexists(path))


class _Quick:
    """A command whose parameters are read without Pydantic where that is possible."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in found:
            # Versions of Typer that do without Pydantic have no such attribute.
            if getattr(param, "_runtime_param", self) is None:
                param._runtime_param = _Reading()  # noqa: SLF001 - there is no other way
        return found


class Command(_Quick, TyperCommand):
    """A command that reads its parameters quickly."""


class Group(_Quick, TyperGroup):
    """A group that builds its commands when they are needed."""

    def listed(self) -> Iterable[tuple[str, Any]]:
        """Return the commands that help lists."""
        return ((name, one) for name, one in self.commands.items() if not one.hidden)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, with a heading for each panel."""
        panels: dict[str, list[tuple[str, Any]]] = {}
        for name, command in self.listed():
            title = command.rich_help_panel or "Commands"
            panels.setdefault(title, []).append((name, command))
        for title, found in panels.items():
            limit = formatter.width - 6 - max(len(name) for name, _ in found)
            with formatter.section(title):
                formatter.write_dl(
                    [(name, one.get_short_help_str(limit)) for name, one in found]
                )


class Commands(Mapping[str, Any]):
    """Commands by name, each built on first use.

    Args:
        makers: The factories of commands.
    """

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        self._makers = makers
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def later(app: typer.Typer, *, hidden: bool = False, **places: str) -> None:
    """Add commands that are imported when they are needed."""
    app.registered_commands += [
        _Later(name.replace("_", "-"), place, hidden=hidden)
        for name, place in places.items()
    ]


class _Later(CommandInfo):
    """A command that is not imported yet."""

    def __init__(self, name: str, place: str, *, hidden: bool) -> None:
        super().__init__(name)
        self.make = partial(imported, place, name, hidden=hidden)


def imported(place: str, name: str, *, hidden: bool = False) -> Any:
    """Import a command or a group of commands, and return it."""
    module, attribute = place.split(".")
    found = getattr(import_module(f"modicum.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        return group_of(found, name)
    app = typer.Typer()
    app.command(name, hidden=hidden)(found)
    return group_of(app, "").commands[name]


def group_of(app: typer.Typer, name: str) -> TyperGroup:
    """Return what Typer would make of an application, its commands not yet built."""
    bare = copy(app)
    bare.registered_commands, bare.registered_groups = [], []
    bare.rich_markup_mode = None
    bare.info = copy(app.info)
    bare.info.cls = Group
    group = get_group(bare)
    group.name = name
    makers: dict[str, Callable[[], Any]] = {}
    for command in app.registered_commands:
        if isinstance(command, _Later):
            makers[str(command.name)] = command.make
            continue
        assert command.callback is not None
        called = command.name or get_command_name(command.callback.__name__)
        command.cls = Command
        makers[called] = partial(
            get_command_from_info,
            command,
            pretty_exceptions_short=True,
            rich_markup_mode=None,
        )
    for inner in app.registered_groups:
        assert isinstance(inner.name, str)
        assert inner.typer_instance is not None
        makers[inner.name] = partial(group_of, inner.typer_instance, inner.name)
    group.commands = Commands(makers)  # type: ignore[assignment]
    return group
