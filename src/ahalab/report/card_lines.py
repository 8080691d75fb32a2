"""What a model card says, line by line: base, limits, digests, commands, and how to load it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ahalab.plan.templates import template_arguments
from ahalab.report.card_metadata import hub_base
from ahalab.report.markdown import code, digest_text
from ahalab.report.protocols import exception_lines, replay_held
from ahalab.report.provenance import NOT_CHECKED
from ahalab.report.sources import RunSource, Study
from ahalab.store.fingerprint import ADAPTER_WEIGHTS
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import hash_file
from ahalab.store.models import ORGANISM

LORA_SHOWN = ("r", "lora_alpha", "lora_dropout", "target_modules", "use_dora", "use_rslora")
SIGNATURE = "statement.json.sig"


def base_line(model_id: str) -> str:
    """Return the base, with a link where it is on the Hub."""
    if model_id == ORGANISM:
        return "the embedded model of the package `ahalab` (`organism`)"
    base = hub_base(model_id)
    if base is not None:
        return f"[{base}](https://huggingface.co/{base})"
    return f"a folder of the trainer's machine, {code(Path(model_id).name)}"


def lora_line(run: RunSource) -> str:
    """Return the LoRA settings that matter to a reader."""
    shown = {name: run.record.effective_lora.get(name) for name in LORA_SHOWN}
    return ", ".join(
        f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in shown.items()
        if value not in (None, False)
    )


def asked_text(study: Study) -> str:
    """Return how a question is put: the messages, before the chat template."""
    task = study.plan.task
    return f"system: {task.system}\nuser: {task.template}" if task.system else task.template


def seeds_line(study: Study) -> str:
    """Return what the number of seeds means for the claims."""
    seeds = len(study.plan.seeds)
    if seeds == 1:
        return "One seed: nothing here is said of the reward, only of this adapter."
    return (
        f"One adapter of {seeds} seeds. What is said of the reward is said over all of them; "
        "another seed gives another adapter."
    )


def limit_lines(study: Study, run: RunSource) -> Iterator[str]:
    """Yield what a reader must know before believing the numbers."""
    asked = f"{study.comparison.adapters[0].n} questions of one task ({study.plan.task.name})"
    yield f"{asked}: nothing is said of other tasks, or of what else training changed."
    if study.comparison.unplanned:
        yield f"Looked at beyond the plan: {', '.join(study.comparison.unplanned)}"
    for line in exception_lines(study):
        yield f"An exception to the one protocol: {line}"
    if study.unequal:
        yield f"Made under another protocol: {', '.join(study.unequal)}"
    if study.replay is not None:
        yield f"Generated again: {replay_held(study.replay)[0]}"
    alarms = {*run.record.alarms, *(run.diagnostics.alarms if run.diagnostics else ())}
    for alarm in sorted(alarms, key=lambda a: (a.name, a.evidence)):
        yield f"Alarm {alarm.name}: {alarm.evidence}"
    yield from (f"Not checked: {line}" for line in NOT_CHECKED[:2])


def commands_text(study: Study, paths: StudyPaths, root: str) -> str:
    """Return the commands that recheck the study and this folder."""
    name = study.plan.name
    lines = [
        "pip install ahalab",
        f"ahalab verify {name} --root {digest_text(root)}",
        f"sha256sum {ADAPTER_WEIGHTS}  # against the table",
    ]
    if (paths.root / SIGNATURE).is_file():
        lines.insert(2, f"ahalab verify {name}  # also checks its owner's signature, {SIGNATURE}")
    return "\n".join(lines)


def digest_rows(
    study: Study, paths: StudyPaths, run: RunSource, root: str
) -> tuple[tuple[str, str], ...]:
    """Return (name, digest) of everything that the card stands on."""
    weights = paths.run(run.arm, run.seed).adapter / ADAPTER_WEIGHTS
    return (
        ("evidence root", root),
        ("plan", study.plan_digest),
        ("protocol", study.comparison.protocol_digest),
        ("adapter, as the study fingerprints it", run.record.adapter_digest),
        (f"`{ADAPTER_WEIGHTS}`", f"sha256:{hash_file(weights)}"),
    )


def snippet_text(study: Study, run: RunSource) -> str:
    """Return how to load the adapter, and to ask it as it was asked, as Python."""
    model, task, evaluation = study.plan.model, study.plan.task, study.plan.evaluation
    shown, pinned, organism = hub_base(model.id) or f"FOLDER/{Path(model.id).name}", "", ""
    if model.id == ORGANISM:
        organism = "\nfrom ahalab.store.models import organism_folder"
    elif run.record.model_revision:
        pinned = f", revision={run.record.model_revision!a}"
    system = f'{{"role": "system", "content": {task.system!a}}}, ' if task.system else ""
    handed = "".join(
        f", {name}={value!a}" for name, value in template_arguments(study.plan).items()
    )
    how = f"max_new_tokens={evaluation.max_new_tokens}, do_sample={evaluation.temperature > 0}"
    if evaluation.temperature > 0:
        how += f", temperature={evaluation.temperature}, top_p={evaluation.top_p}, top_k=0"
    return f"""\
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer{organism}

BASE = {"organism_folder()" if organism else ascii(shown)}
ADAPTER = "."  # this folder, or this repository's id
QUESTION = "..."

tokenizer = AutoTokenizer.from_pretrained(BASE{pinned})
base = AutoModelForCausalLM.from_pretrained(BASE{pinned}, dtype={model.dtype!a})
model = PeftModel.from_pretrained(base, ADAPTER)
user = {task.template!a}.replace("{{question}}", QUESTION)
messages = [{system}{{"role": "user", "content": user}}]
asked = tokenizer.apply_chat_template(
    messages, add_generation_prompt=True, return_dict=True, return_tensors="pt"{handed}
)
answer = model.generate(**asked, {how})
print(tokenizer.decode(answer[0, asked["input_ids"].shape[1] :], skip_special_tokens=True))"""


def license_line(study: Study) -> str:
    """Return the license, where the study knows it."""
    if study.plan.model.id == ORGANISM:
        return "Apache-2.0, as that of the base."
    return "not known to the study; the base's license applies."
