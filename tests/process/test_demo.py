"""The demo's story with a real broker, and with one that forgets what it promised."""

from __future__ import annotations

from pathlib import Path

from tidelog.worlds.runtime.crash_demo import PARTITION, run
from tidelog.worlds.runtime.demo_broker import DemoBroker


class ForgetfulBroker(DemoBroker):
    """Most of what it had written is gone when it comes back."""

    def kill(self) -> None:
        super().kill()
        (segment,) = (self.log_path.parent / "data" / str(PARTITION)).glob("*.log")
        data = segment.read_bytes()
        segment.write_bytes(data[: len(data) // 4])


def test_a_broker_killed_in_mid_write_keeps_its_word(tmp_path: Path) -> None:
    """Orders it had written without saying so are sent again, and stand in the log once."""
    said: list[str] = []

    accounts = run(DemoBroker(tmp_path), said.append, orders=800)

    assert accounts.is_clean, accounts.anomalies
    assert accounts.ok_before_kill > 0
    assert accounts.recognised == accounts.written_untold > 0, said
    assert accounts.batches_sent_again > 0
    assert accounts.outcomes == {"ok": accounts.read}
    assert accounts.read >= 1_000


def test_a_broker_that_forgets_is_found_out(tmp_path: Path) -> None:
    accounts = run(ForgetfulBroker(tmp_path), lambda text: None, orders=800)

    lost = [anomaly for anomaly in accounts.anomalies if anomaly.check == "lost"]
    assert len(lost) >= accounts.ok_before_kill // 2 > 0
