"""Mechanisms as losses in ledger units, for tests that care for nothing else."""

from __future__ import annotations

from fractions import Fraction

from modicum.accounting import Loss, mechanisms

gaussian_rho = mechanisms.gaussian_rho


def laplace(*, sensitivity_l1: Fraction, scale: Fraction) -> Loss:
    return mechanisms.laplace(sensitivity_l1=sensitivity_l1, scale=scale).loss()


def gaussian(*, rho: Fraction) -> Loss:
    return mechanisms.gaussian(rho=rho).loss()


def randomized_response(*, truth: Fraction, values: int, answers: int) -> Loss:
    return mechanisms.randomized_response(
        truth=truth, values=values, answers=answers
    ).loss()


def declared_pure(*, eps: Fraction, delta: Fraction = Fraction(0)) -> Loss:
    return mechanisms.declared_pure(eps=eps, delta=delta).loss()


def declared_zcdp(*, rho: Fraction) -> Loss:
    return mechanisms.declared_zcdp(rho=rho).loss()


def declared_gdp(*, mu: Fraction) -> Loss:
    return mechanisms.declared_gdp(mu=mu).loss()
