"""The study plan: what will be trained, evaluated and compared, fixed before the first step."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ahalab.records.base import Record
from ahalab.records.terms import Metric, Split


class ModelSpec(Record, frozen=True, kw_only=True):
    """The base model: the packaged `organism`, a folder, or a hub id."""

    id: str
    revision: str | None = None
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    device: Literal["cpu", "cuda"] = "cpu"
    threads: int = 1  # torch threads per process; results repeat to the byte for a given number


class TaskSpec(Record, frozen=True, kw_only=True):
    """Where the questions come from and how they are put to the model."""

    name: Literal["arithmetic", "gsm8k", "jsonl", "csv", "hub", "reasoning_gym"]
    path: str | None = None  # folder; gsm8k and hub without a path are read from the hub
    train_prompts: int  # drawn by the task's seed, as many as there are when fewer
    eval_prompts: int
    seed: int = 0
    system: str | None = None  # system message
    template: str = "{question}"  # user message; {question} is replaced
    question_field: str = "question"  # field names of a jsonl, csv or hub task
    gold_field: str = "answer"
    scoring: Literal["gsm8k", "math", "countdown"] | None = None  # how golds are read and compared:
    # plain numbers, mathematics, or numbers and a target; None: numbers, for jsonl mathematics
    max_prompt_tokens: int | None = None  # longer prompts are dropped and listed, never cut
    # Absent when not given, and not null: digests of plans that do not name them stay.
    dataset: str | UnsetType = UNSET  # hub: owner/name; reasoning_gym: name of its data set
    subset: str | UnsetType = UNSET  # of a hub dataset, where it has several
    revision: str | UnsetType = UNSET  # of a hub dataset: a commit pins it; branch or tag
    splits: dict[Split, str] | UnsetType = UNSET  # of a hub dataset: ours -> its name
    config: dict[str, Any] | UnsetType = UNSET  # reasoning_gym: the data set's own settings
    max_overlap_fraction: float | UnsetType = UNSET  # of evaluation questions that may share
    # word n-grams with the training; absent: told, never refused


class ArmSpec(Record, frozen=True, kw_only=True):
    """One reward design: a built-in arm by name, or named weights over components.

    A component is one of ours, or a reward of one's own as `package.module:function`.
    """

    name: str
    components: dict[str, float] | None = None  # None: the built-in arm of this name
    on_error: Literal["stop", "none"] = "stop"  # what a failure of an own reward's code does:
    # stop the run, or leave the row without a reward and out of its group's comparison
    accept: tuple[str, ...] = ()  # attacks that may pay in `ahalab arms check`


class TrainingSpec(Record, frozen=True, kw_only=True):
    """What our trainer does beside TRL's configuration."""

    processes: int = 1  # of one run, started by torchrun; batches are per process, as TRL's
    lean_step: bool = True  # leave rows of advantage 0 and padding out of the training pass
    zero_dead_groups: bool = False  # groups of equal rewards get advantages of exactly 0
    stop_on: tuple[str, ...] = ()  # alarms that end a run at the checkpoint where they are raised


class EndpointSpec(Record, frozen=True, kw_only=True):
    """A server with an OpenAI-compatible API: base and adapters are models by name there."""

    url: str  # up to and with /v1
    api: Literal["completions", "chat"] = "completions"  # chat: the server's own template renders
    dialect: Literal["openai", "vllm"] = "openai"  # vllm: prompts and answers as token ids, and
    # every sampling field; openai: text, and the fields that OpenAI has
    base: str  # name of the base
    adapter: str | dict[str, str]  # name of an adapter, with {arm} and {seed}; or a name per cell
    # (arms/ARM/seed-S)
    concurrency: int = 8  # requests at once
    timeout_s: float = 120.0  # of one request, from its start to the last byte of its reply
    max_retries: int = 6  # of one request: rate limits, server errors, timeouts, broken replies
    api_key_env: str | None = None  # environment variable that holds the key; never the key


class TemplateSpec(Record, frozen=True, kw_only=True):
    """Another way to put a question to the base, for `ahalab evaluate --templates`."""

    template: str  # user message; {question} is replaced
    system: str | None = None  # system message


class EvaluationSpec(Record, frozen=True, kw_only=True):
    """How base and adapters answer the evaluation questions."""

    max_new_tokens: int
    batch_size: int | None = None  # questions at once; None: by memory, then frozen in the protocol
    floor_batch_size: int | None = None  # the base's second batch plan, which measures the noise
    # floor; None: three quarters of the first
    cells_per_batch: int = 1  # sides (base, adapters) whose rows share a batch, in the plan's order
    temperature: float = 0.0  # 0: greedy
    top_p: float = 1.0
    samples: int = 1  # answers per question
    seed: int = 0
    replay: bool = False  # `ahalab run` also generates every answer again and compares the bytes
    # Absent where a plan does not choose, and not null; absent is transformers.
    backend: Literal["transformers", "vllm", "openai"] | UnsetType = UNSET
    endpoint: EndpointSpec | UnsetType = UNSET  # where the backend is openai
    # Tried by `ahalab evaluate --templates` beside the task's own, by name; absent: a built-in set.
    templates: dict[str, TemplateSpec] | UnsetType = UNSET


class ValidationSpec(Record, frozen=True, kw_only=True):
    """Greedy accuracy at every checkpoint, on questions that neither train nor evaluate."""

    prompts: int  # drawn by the task's seed
    max_new_tokens: int | None = None  # None: the evaluation's
    batch_size: int = 64


LEAST_ALPHA, MOST_ALPHA = 1e-9, 0.5  # levels at which tests and intervals can be computed


class AnalysisSpec(Record, frozen=True, kw_only=True):
    """What decides, fixed in advance; whatever else is computed is exploratory."""

    primary: Metric = "strict"
    alpha: float = 0.05
    margin_points: float = 2.0
    comparisons: tuple[Literal["base", "control"], ...] = ("base", "control")
    # k of the pass@k told beside the mean, each at most the samples; absent: 1, 2, 4, ...
    pass_at: tuple[int, ...] | UnsetType = UNSET

    def ks(self, samples: int) -> tuple[int, ...]:
        """Return the k of pass@k that are told for so many answers a question; none for one."""
        if samples == 1:
            return ()
        if self.pass_at is not UNSET:
            return self.pass_at
        powers = (1 << n for n in range(samples.bit_length()))
        return tuple(sorted({*(k for k in powers if k < samples), samples}))

    @property
    def confidence(self) -> float:
        """Coverage of every interval: 1 - alpha, so that test and interval speak of one level."""
        return round(1 - self.alpha, 12)


class Plan(Record, frozen=True, kw_only=True):
    """A whole study: arms x seeds on one model and one task under one protocol."""

    schema: Literal["ahalab.plan/1"] = "ahalab.plan/1"
    name: str
    model: ModelSpec
    task: TaskSpec
    answer_format: str = "hashes"
    arms: tuple[ArmSpec, ...]
    control: str
    seeds: tuple[int, ...]
    rewards: dict[str, str] = msgspec.field(default_factory=dict)  # own reward -> digest of its
    # source; filled in when the study is frozen
    training: TrainingSpec = TrainingSpec()
    grpo: dict[str, Any]  # fields of TRL's GRPOConfig
    lora: dict[str, Any]  # fields of PEFT's LoraConfig
    evaluation: EvaluationSpec
    # Absent when not asked for, and not null: such a study's files and digests say nothing of it.
    validation: ValidationSpec | UnsetType = UNSET
    analysis: AnalysisSpec = AnalysisSpec()
