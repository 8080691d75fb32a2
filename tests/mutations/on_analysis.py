"""Tampering with what was concluded, all digests mended."""

from __future__ import annotations

from mutations.kinds import ANY_LINE, CHANGED, COMPARISON, Mutation, half, record, text

ANALYSIS = [
    Mutation(
        "p is halved",
        record(COMPARISON, "adapters", 0, "p_value", to=half),
        "stat.recompute",
        COMPARISON,
    ),
    Mutation(
        "the exact p is halved",
        record(COMPARISON, "adapters", 0, "p_exact", to=half),
        "stat.recompute",
        COMPARISON,
    ),
    Mutation(
        "an interval is narrowed",
        record(COMPARISON, "arms", 0, "interval_points", 0, to=0.5),
        "stat.recompute",
        COMPARISON,
    ),
    Mutation(
        "Holm is left out",
        record(COMPARISON, "arms", 0, "p_holm", to=0.01),
        "stat.recompute",
        COMPARISON,
    ),
    Mutation(
        "a sign is turned",
        record(COMPARISON, "arms", 2, "difference_points", to=lambda v: -v),
        "stat.recompute",
        COMPARISON,
    ),
    Mutation(
        "a verdict is improved",
        record(COMPARISON, "arms", 0, "verdict", to="improved"),
        "stat.recompute",
        COMPARISON,
    ),
    Mutation(
        "an adapter is said to have learned nothing",
        record(COMPARISON, "adapters", 0, to=lambda a: {**a, "same_answers": True}),
        "stat.n",
        COMPARISON,
    ),
    Mutation(
        "a sentence says that nothing was learned",
        record(COMPARISON, "adapters", 0, "sentence", to=lambda s: f"{s} It learned nothing."),
        "stat.sentence",
        COMPARISON,
    ),
    Mutation(
        "a denominator is halved",
        record(COMPARISON, "adapters", 0, "n", to=12),
        "stat.n",
        COMPARISON,
    ),
    Mutation(
        "gained pairs are added",
        record(COMPARISON, "adapters", 1, "gained", to=20),
        "stat.n",
        COMPARISON,
    ),
    Mutation(
        "the noise floor is lowered", record(COMPARISON, "floor", "n", to=9), "stat.n", COMPARISON
    ),
    Mutation(
        "counts of outcomes are edited",
        record(COMPARISON, "rates", 0, "strict", "correct", to=23),
        "stat.n",
        COMPARISON,
    ),
    Mutation(
        "an interval is said to cover seeds",
        record(COMPARISON, "arms", 0, "interval_covers", to="nothing"),
        "stat.method",
        COMPARISON,
    ),
    Mutation(
        "a sentence is edited",
        record(COMPARISON, "arms", 0, "sentence", to=lambda s: s.replace("+", "+9")),
        "stat.sentence",
        COMPARISON,
    ),
    Mutation(
        "a sentence tells another verdict",
        record(
            COMPARISON,
            "adapters",
            0,
            "sentence",
            to=lambda s: s.replace("shows no evidence of a change from", "is better than"),
        ),
        "stat.sentence",
        COMPARISON,
    ),
    Mutation(
        "a planned comparison is absent",
        record(COMPARISON, "arms", to=lambda a: a[1:]),
        "outcome.missing",
        COMPARISON,
    ),
    Mutation(
        "the noise floor is left out",
        record(COMPARISON, "floor", to=None),
        "outcome.missing",
        COMPARISON,
    ),
    Mutation(
        "another metric is called primary",
        record(COMPARISON, "primary", to="lenient"),
        "outcome.added",
        COMPARISON,
    ),
    Mutation(
        "an exploratory comparison is called primary",
        record(COMPARISON, "arms", -1, "primary", to=True),
        "outcome.added",
        COMPARISON,
    ),
    Mutation(
        "a missing cell is invented",
        record(COMPARISON, "missing", to=["x"]),
        "outcome.missing",
        COMPARISON,
    ),
    Mutation(
        "a lost answer is left out",
        record(CHANGED, "changed", to=lambda c: c[1:]),
        "changed",
        CHANGED,
    ),
    Mutation(
        "the rule of a changed answer of the base is edited",
        record(CHANGED, "changed", 0, "base_rule", to="guess"),
        "changed",
        CHANGED,
    ),
    Mutation(
        "the rule of a changed answer of an adapter is edited",
        record(CHANGED, "changed", 0, "adapter_rule", to="guess"),
        "changed",
        CHANGED,
    ),
    Mutation(
        "the place where two answers part is edited",
        record(CHANGED, "changed", 0, "parted_at", to=lambda at: at + 1),
        "changed",
        CHANGED,
    ),
    Mutation(
        "a lost answer is called gained",
        record(CHANGED, "changed", 0, "change", to=lambda c: "lost" if c == "gained" else "gained"),
        "changed",
        CHANGED,
    ),
    Mutation(
        "a quoted answer stands in no log",
        record(CHANGED, "changed", 0, "base_completion", to="#### 0"),
        "report.quote",
        CHANGED,
    ),
    Mutation(
        "an arm is best more often than it is",
        record("analysis/ablation.json", "ranking", 0, "best_fraction", to=0.9999),
        "ablation",
        "analysis/ablation.json",
    ),
    Mutation(
        "an arm's rank is narrowed, above",
        record("analysis/ablation.json", "ranking", -1, "rank_low", to=lambda n: n - 1),
        "ablation",
        "analysis/ablation.json",
    ),
    Mutation(
        "an arm's rank is narrowed, below",
        record("analysis/ablation.json", "ranking", -1, "rank_high", to=lambda n: n + 1),
        "ablation",
        "analysis/ablation.json",
    ),
    Mutation(
        "two ranks are exchanged",
        record("analysis/ablation.json", "ranking", to=lambda r: [r[1], r[0], *r[2:]]),
        "ablation",
        "analysis/ablation.json",
    ),
    Mutation(
        "a cell of the ablation is edited",
        record("analysis/ablation.json", "cells", 0, "own_score_adapter", to=0.99),
        "ablation",
        "analysis/ablation.json",
    ),
    Mutation(
        "the spread over seeds is edited",
        record("analysis/ablation.json", "arms", 0, "strict_seed_spread_points", to=0.1),
        "ablation",
        "analysis/ablation.json",
    ),
    Mutation(
        "a claim is edited",
        record("claims.json", "claims", 4, "value", to=31.0),
        "claims",
        "claims.json",
    ),
    Mutation(
        "a claim is left out",
        record("claims.json", "claims", to=lambda c: c[1:]),
        "claims",
        "claims.json",
    ),
    Mutation(
        "a claim rests on other files",
        record("claims.json", "claims", 0, "inputs", to=["x"]),
        "claims",
        "claims.json",
    ),
    Mutation(
        "the report binds another value",
        text("report.html", '"value":"no evidence"', '"value":"improved"'),
        "report.bind",
        "report.html",
        ANY_LINE,
    ),
    Mutation(
        "the report prints another number",
        text("report.html", "+29.2</td>", "+39.2</td>"),
        "report.bind",
        "report.html",
        ANY_LINE,
    ),
    Mutation(
        "the report is stale",
        text("report.html", '"root":"sha256:', '"root":"sha256:0'),
        "report.root",
        "report.html",
        ANY_LINE,
    ),
    Mutation(
        "the report is not bound at all",
        text("report.html", 'id="ahalab-claims"', 'id="x"'),
        "report.bind",
        "report.html",
    ),
    Mutation(
        "another plan is named by the analysis",
        record(COMPARISON, "plan_digest", to="sha256:0"),
        "plan.match",
        COMPARISON,
    ),
]
