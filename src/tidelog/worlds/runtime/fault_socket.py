"""The way to a broker's faults: a Unix socket that takes one JSON object per line, and answers so.

`replace` changes the whole table at once, `list` shows it, `record` begins or ends a journal. Both
also stand in files beside the socket, so that a restarted broker goes on as it was. A command that
is not understood changes nothing, and its answer says why in one line.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from tidelog.core.model.limits import MIB
from tidelog.faults.fields import BadRule, suggestion
from tidelog.faults.rules import FaultRule, read_peers, read_rules, rule_value
from tidelog.worlds.runtime.fault_gate import FaultGate
from tidelog.worlds.runtime.machine import MachineUnfit

LINE_BYTES_MAX = 1 * MIB
PATH_BYTES_MAX = 107
"""What a Unix socket's address has room for."""
Answer = dict[str, Any]


def bind_control(path: str) -> socket.socket:
    """The listening socket, for this user only; one that nobody listens at any more is replaced."""
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        raise MachineUnfit(
            f"--faults {path}: a socket's path has at most {PATH_BYTES_MAX} bytes, "
            f"this one {len(os.fsencode(path))}"
        )
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        umask = os.umask(0o177)
        try:
            bound.bind(path)
        finally:
            os.umask(umask)
        bound.listen()
    except OSError as error:
        bound.close()
        raise MachineUnfit(f"--faults {path}: {error.strerror or error}") from error
    bound.setblocking(False)
    return bound


def _remove_stale(path: str) -> None:
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise MachineUnfit(f"--faults {path}: that is there and is no socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            os.unlink(path)
            return
    raise MachineUnfit(f"--faults {path}: another broker listens there")


class FaultControl:
    """Commands and their answers; the gate is changed by nobody else."""

    def __init__(self, gate: FaultGate, path: str) -> None:
        """CannotStart if there cannot be a socket at that path."""
        self.gate = gate
        self._path = path
        self._bound = bind_control(path)
        self._rules_path = f"{path}.rules"
        self._record_path = f"{path}.record"
        self._addresses: dict[str, str] = {}
        gate.on_counted = self._save_uncommanded

    # Start and end.

    def load(self) -> None:
        """What was in force when the broker was last there."""
        self._load_record()
        try:
            with open(self._rules_path, "rb") as file:
                saved = json.loads(file.read())
            rules, peers = read_rules(saved["rules"]), read_peers(saved["peers"])
            self.gate.table.refuse(rules, peers)
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, BadRule) as error:
            raise MachineUnfit(
                f"{self._rules_path} cannot be read: {error}; remove it to start without faults"
            ) from error
        self._addresses = saved["peers"]
        self.gate.load(rules, peers, saved.get("injected", {}))

    def _load_record(self) -> None:
        """The journal goes on in the same file, from the first request on."""
        try:
            with open(self._record_path, encoding="utf-8") as file:
                self.gate.record(file.read())
        except FileNotFoundError:
            return
        except OSError as error:
            raise MachineUnfit(
                f"the journal named in {self._record_path} cannot be written: {error}"
            ) from error

    async def listen(self) -> None:
        self._server = await asyncio.start_unix_server(
            self._serve, sock=self._bound, limit=LINE_BYTES_MAX
        )

    def close(self) -> None:
        """The node has stopped."""
        self.gate.stop()
        self._server.close()
        with suppress(OSError):
            os.unlink(self._path)

    # Commands.

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while True:
                try:
                    line = await reader.readline()
                except ValueError:
                    answer = _refused(f"a command has at most {LINE_BYTES_MAX} bytes")
                    writer.write(json.dumps(answer).encode() + b"\n")
                    await writer.drain()
                    break
                if not line:
                    break
                writer.write(json.dumps(self.command(line)).encode() + b"\n")
                await writer.drain()
        writer.close()

    def command(self, line: bytes) -> Answer:
        try:
            command = json.loads(line)
        except (ValueError, RecursionError) as error:
            return _refused(f"this is not JSON: {error}")
        if not isinstance(command, dict):
            return _refused('a command is an object like {"do": "list"}')
        do = command.pop("do", None)
        known = {"replace": self._replace, "list": self._list, "record": self._record}
        if do not in known:
            return _refused(f"do: {do!r} is no command{suggestion(str(do), known)}")
        try:
            return known[do](command)
        except BadRule as refusal:
            return _refused(str(refusal))
        except OSError as error:
            return _refused(f"{error.filename}: {error.strerror or error}")

    def _replace(self, command: dict[str, Any]) -> Answer:
        _only(command, "peers", "rules")
        if "rules" not in command:
            raise BadRule('replace needs "rules"')
        rules = read_rules(command["rules"])
        addresses = command.get("peers", {})
        peers = read_peers(addresses)
        self.gate.table.refuse(rules, peers)
        self._save(rules, addresses)
        self._addresses = addresses
        self.gate.replace(rules, peers)
        return {"ok": True}

    def _list(self, command: dict[str, Any]) -> Answer:
        _only(command)
        self.gate.on_wake()
        table = self.gate.table
        return {
            "ok": True,
            "rules": [rule_value(rule) for rule in table.rules],
            "held_frames": self.gate.held_frames,
            "injected": dict(table.counts),
            "record": self.gate.recorded_path,
        }

    def _record(self, command: dict[str, Any]) -> Answer:
        _only(command, "path")
        path = command.get("path")
        if path is not None and not (isinstance(path, str) and os.path.isabs(path)):
            raise BadRule(f"path {path!r} is not an absolute path or null")
        self.gate.record(path)
        if path is None:
            with suppress(FileNotFoundError):
                os.unlink(self._record_path)
        else:
            _write(self._record_path, path)
        return {"ok": True}

    def _save_uncommanded(self) -> None:
        """Counts changed, or rules ended: the next start could live without knowing it."""
        with suppress(OSError):
            self._save(self.gate.table.rules, self._addresses)

    def _save(self, rules: Iterable[FaultRule], addresses: dict[str, str]) -> None:
        saved = {
            "peers": addresses,
            "rules": [rule_value(rule) for rule in rules],
            "injected": self.gate.table.injected_errors(rules),
        }
        _write(self._rules_path, json.dumps(saved) + "\n")


def _refused(reason: str) -> Answer:
    return {"ok": False, "error": reason}


def _only(command: dict[str, Any], *names: str) -> None:
    for name in command:
        if name not in names:
            raise BadRule(f"{name!r} is unknown here{suggestion(name, names)}")


def _write(path: str, text: str) -> None:
    """Whole or not at all, whenever the process ends."""
    temporary = f"{path}.new"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(temporary, path)
