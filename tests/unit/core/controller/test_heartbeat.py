"""Heartbeats: every standing, every wish, and what becomes of it."""

from __future__ import annotations

import pytest

from tidelog.core.controller.heartbeat import Beat, Standing, next_standing

FENCED, UNFENCED = Standing.FENCED, Standing.UNFENCED
LEAVING, GONE = Standing.LEAVING, Standing.GONE


def after(
    standing: Standing,
    *,
    fence: bool = False,
    stop: bool = False,
    caught_up: bool = True,
    leads: bool = False,
    known: bool = False,
) -> Standing:
    return next_standing(
        Beat(
            standing=standing,
            wants_fence=fence,
            wants_stop=stop,
            is_caught_up=caught_up,
            leads_any=leads,
            is_known_to_leave=known,
        )
    )


@pytest.mark.parametrize("leads", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_a_fenced_broker_comes_in_when_it_wants_to_and_has_caught_up(
    leads: bool, known: bool
) -> None:
    assert after(FENCED, leads=leads, known=known) is UNFENCED
    assert after(FENCED, caught_up=False, leads=leads, known=known) is FENCED
    assert after(FENCED, fence=True, leads=leads, known=known) is FENCED
    assert after(FENCED, stop=True, leads=leads, known=known) is GONE
    assert after(FENCED, stop=True, fence=True, caught_up=False) is GONE


def test_who_is_in_stays_in_even_if_it_lags_behind() -> None:
    assert after(UNFENCED) is UNFENCED
    assert after(UNFENCED, caught_up=False, leads=True) is UNFENCED


def test_who_wants_out_is_out() -> None:
    assert after(UNFENCED, fence=True, leads=True) is FENCED
    assert after(UNFENCED, fence=True, stop=True, leads=True) is GONE


def test_who_wants_to_stop_hands_over_first_and_waits_until_all_others_know() -> None:
    assert after(UNFENCED, stop=True, leads=True) is LEAVING
    assert after(LEAVING, stop=True, leads=True, known=True) is LEAVING
    assert after(LEAVING, stop=True, leads=False, known=False) is LEAVING
    assert after(LEAVING, stop=True, leads=False, known=True) is GONE


def test_who_leads_nothing_may_stop_at_once() -> None:
    assert after(UNFENCED, stop=True, leads=False) is GONE


def test_only_the_gone_and_the_fenced_are_fenced() -> None:
    assert [each for each in Standing if each.is_fenced] == [FENCED, GONE]
    assert after(GONE, stop=True) is GONE
