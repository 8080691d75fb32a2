"""The traps of TRL and PEFT (TRL_FACTS.md), shown on the libraries themselves.

A test that fails here says that a trap went away. That none reaches our records is tested in
test_training_records.py, test_kills_of_training.py and test_response_logger.py.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lab import PLAN, Answerer, environment, plan_of

pytestmark = pytest.mark.train
PLAIN_TRL = """
import json, sys, math, torch
torch.set_num_threads(1)
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed
from trl import GRPOConfig, GRPOTrainer

asked = json.loads(sys.argv[1])
model, out = asked.pop("model"), asked.pop("out")
rewards = asked.pop("rewards")
resume = asked.pop("resume", None)
calls = []

def paying(kind):
    def score(completions, **named):
        if kind == "first" : calls.extend(completions)
        n = len(completions)
        if kind == "constant": return [0.1] * n
        if kind == "between groups": return [float(i // 4) for i in range(n)]
        if kind == "pairs": return [(i % 2) * (0.01 if i < 4 else 1.0) for i in range(n)]
        if kind == "none and one": return [None if i % 4 == 0 else 1.0 for i in range(n)]
        if kind == "nan and one": return [math.nan if i % 4 == 0 else 1.0 for i in range(n)]
        return [float(len(c[0]["content"]) % 3) for c in completions]
    return score

functions = [paying(kind) for kind in rewards]
tokenizer = AutoTokenizer.from_pretrained(model)
tokenizer.padding_side = "left"
set_seed(1)
rows = [{"prompt": [{"role": "user", "content": f"What is {n} + {n}?"}]} for n in range(8)]
config = GRPOConfig(
    output_dir=out, report_to="none", use_cpu=True, bf16=False, max_completion_length=8,
    seed=1, disable_tqdm=True, beta=0.0, gradient_checkpointing=False,
    **{"per_device_train_batch_size": 8, "save_strategy": "no", "logging_steps": 1,
       "num_generations": 4, **asked},
)
advantages = []
class Watched(GRPOTrainer):
    def _generate_and_score_completions(self, inputs):
        output = super()._generate_and_score_completions(inputs)
        advantages.extend(output["advantages"].tolist())
        return output
trainer = Watched(
    model=AutoModelForCausalLM.from_pretrained(model), args=config, reward_funcs=functions,
    train_dataset=Dataset.from_list(rows), processing_class=tokenizer,
    peft_config=LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM"),
)
trainer.train(resume_from_checkpoint=resume)
trainer.save_model(out)
sys.stderr.flush()
print("RESULT " + json.dumps({
    "generated": len(calls), "history": trainer.state.log_history, "advantages": advantages,
}))
"""


def plain_trl(out: Path, *rewards: str, hash_seed: str = "0", **config: Any) -> dict[str, Any]:
    """Train with TRL alone; return what it generated and what it logged."""
    pytest.importorskip("trl", reason="pip install 'ahalab[train]'")
    from ahalab.store.models import organism_folder

    asked = {"model": str(organism_folder()), "out": str(out), "rewards": rewards, **config}
    done = subprocess.run(
        [sys.executable, "-c", PLAIN_TRL, json.dumps(asked)],
        capture_output=True, text=True, timeout=200, env=environment(PYTHONHASHSEED=hash_seed),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    line = next(x for x in done.stdout.split("\n") if x.startswith("RESULT "))
    found: dict[str, Any] = json.loads(line.removeprefix("RESULT "))
    return found


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """Plain TRL with its own completion log, written every third of four steps."""
    out = tmp_path_factory.mktemp("logged")
    asked = {"max_steps": 4, "logging_steps": 3, "log_completions": True}
    return plain_trl(out, "first", "other", **asked), out


def test_trap_1_trls_own_completion_log_loses_rows(logged: tuple[dict[str, Any], Path]) -> None:
    found, out = logged
    tables = list((out / "completions").glob("*.parquet"))
    from pyarrow.parquet import ParquetFile

    written = sum(ParquetFile(table).metadata.num_rows for table in tables)
    assert found["generated"] == 4 * 8
    assert written != found["generated"]


def test_trap_5_two_reward_functions_of_one_name_collapse_into_one_metric(
    logged: tuple[dict[str, Any], Path],
) -> None:
    found, _ = logged  # both functions are named `score`
    names = {key for key in found["history"][0] if key.startswith("rewards/")}
    assert names == {"rewards/score/mean", "rewards/score/std"}


def test_trap_18_peft_writes_modules_in_set_order_and_the_bases_path(
    logged: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    from ahalab.store.models import organism_folder

    orders = set()
    for seed in ("0", "1", "2"):
        program = (
            "import sys; from peft import LoraConfig, get_peft_model;"
            "from transformers import AutoModelForCausalLM;"
            "m = AutoModelForCausalLM.from_pretrained(sys.argv[1]);"
            "c = LoraConfig(r=2, target_modules='all-linear');"
            "get_peft_model(m, c).save_pretrained(sys.argv[2])"
        )
        out = tmp_path / seed
        arguments = [sys.executable, "-c", program, str(organism_folder()), str(out)]
        if seed == "0":
            out = logged[1]
        else:
            subprocess.run(
                arguments, check=True, capture_output=True, env=environment(PYTHONHASHSEED=seed)
            )
        config = json.loads((out / "adapter_config.json").read_bytes())
        orders.add(tuple(config["target_modules"]))
        assert config["base_model_name_or_path"] == str(organism_folder())
    assert len({frozenset(order) for order in orders}) == 1
    assert len(orders) > 1


def test_trap_3_a_batch_scale_hides_dead_groups(tmp_path: Path) -> None:
    found = plain_trl(tmp_path, "between groups", max_steps=1, scale_rewards="batch")
    assert found["history"][0]["frac_reward_zero_std"] == 0.0  # though every group was constant


def test_trap_4_a_reward_that_is_missing_is_skipped_without_a_word(tmp_path: Path) -> None:
    found = plain_trl(tmp_path, "none and one", "constant", max_steps=1)
    assert all(math.isfinite(a) for a in found["advantages"])
    assert found["history"][0]["reward"] == pytest.approx(0.1 + 0.75)  # None counted as 0


def test_trap_2_a_resume_inside_a_generation_window_is_another_run(tmp_path: Path) -> None:
    window = {
        "max_steps": 4, "steps_per_generation": 4, "per_device_train_batch_size": 4,
        "save_strategy": "steps", "save_steps": 2, "learning_rate": 1e-2,
    }  # fmt: skip
    weights = "adapter_model.safetensors"
    whole, again = tmp_path / "whole", tmp_path / "again"
    plain_trl(whole, "first", **window)
    plain_trl(again, "first", resume=str(whole / "checkpoint-2"), **window)
    assert (whole / weights).read_bytes() != (again / weights).read_bytes()


def test_trap_6_greedy_generation_takes_up_the_models_own_configuration(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="pip install 'ahalab[train]'")
    from transformers import AutoModelForCausalLM

    from ahalab.store.models import organism_folder
    from ahalab.tasks.library_loop import generate_whole

    asked = tuple(range(5, 15))

    def configured(penalty: float | None) -> Path:
        folder = Path(shutil.copytree(organism_folder(), tmp_path / f"model-{penalty}"))
        path = folder / "generation_config.json"
        own = json.loads(path.read_bytes())
        if penalty is not None:
            path.write_text(json.dumps({**own, "repetition_penalty": penalty}))
        return folder

    plain, penalised = configured(None), configured(9.0)

    def answers(folder: Path) -> list[int]:
        ids = torch.tensor([asked])
        found = AutoModelForCausalLM.from_pretrained(folder).generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False,
            max_new_tokens=30, min_new_tokens=30, pad_token_id=0,
        )  # fmt: skip
        return list(found[0].tolist())

    assert answers(plain) != answers(penalised)

    def ours(folder: Path) -> tuple[object, list[list[int]]]:
        backend = (answerer := Answerer(plan_of(PLAN), folder)).backend
        whole = generate_whole(backend.model, [asked], backend.generation)
        return answerer.generate([asked], 0), whole

    assert ours(plain) == ours(penalised)


def test_trap_12_in_groups_of_two_every_gap_is_the_same_advantage(tmp_path: Path) -> None:
    found = plain_trl(tmp_path, "pairs", max_steps=1, num_generations=2)
    assert [abs(a) for a in found["advantages"]] == pytest.approx([0.707] * 8, abs=0.02)


def test_trap_19_a_group_of_equal_rewards_need_not_have_advantages_of_zero(tmp_path: Path) -> None:
    found = plain_trl(tmp_path, "constant", max_steps=1, num_generations=8)
    assert max(abs(a) for a in found["advantages"]) > 0
    assert max(abs(a) for a in found["advantages"]) < 1e-2
