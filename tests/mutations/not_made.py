"""Fields that no study of the suite holds, and why, or where else a change of them is tried."""

from __future__ import annotations

NOT_MADE = (
    ("AdapterComparison", "same_answers", "by hand in on_analysis.py: the field is there or not"),
    ("ChangedVerdict", "arm seed against metric first again",
     "a changed verdict is a failure of `replay` by itself (tests/verify/test_replays.py)"),
    ("Comparison", "unplanned",
     "more than was planned is a failure of `arms.all` by itself (on_records.py)"),
    ("Dropped", "split source reason", "the invented prompts are all short; UNJUDGED"),
    ("EndpointSpec", "url api dialect base adapter concurrency timeout_s max_retries api_key_env",
     "a plan's field, as all others under the plan's digest; answers of endpoints are tampered "
     "with in tests/verify/test_verifying_endpoints.py"),
    ("EvaluationSpec", "backend", "as above"),
    ("Selection", "origin", "the embedded task depends on nothing outside; UNJUDGED"),
    ("SharedWords", "prompt_id train_prompt_id fraction words",
     "no two questions of the embedded task share enough words; `Overlap.examples` is changed"),
    ("Spike", "figure step value median_before prompt_ids",
     "four steps have no spike; `Diagnostics.spikes` is changed"),
    ("TaskSpec", "config dataset max_overlap_fraction revision splits subset",
     "a plan's field, as all others under the plan's digest"),
)  # fmt: skip

# Modules (or structs) of records that lie in no study, or have a suite of their own, and which.
NO_DOOR = {
    "counterfactual": "printed by `ahalab counterfactual`, in no study",
    "demo": "ships with the package",
    "pair": "printed by `ahalab compare` and `ahalab score`",
    "power": "printed by `ahalab power`",
    "preflight": "a working file, no evidence",
    "rescoring": "printed by `ahalab rescore`",
    "AblationStage": "printed by `ahalab ablate`",
    "StagedAblation": "printed by `ahalab ablate`",
    "reflection": "tests/verify/test_verifying_reflection.py",
    "signature": "tests/verify/test_signatures.py",
}
