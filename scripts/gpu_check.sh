#!/usr/bin/env bash
# Trains and evaluates on a GPU within ten minutes, and prints a table: was the GPU used, are all rows there, does the
# evidence verify, and which share of vLLM's greedy answers equals that of transformers. Exit 1 when a check failed.
#
#   scripts/gpu_check.sh                           the embedded model, in virtual environments of its own
#   scripts/gpu_check.sh --model FOLDER_OR_HUB_ID  and a real model (instruction-tuned, safetensors)
#   scripts/gpu_check.sh --python PYTHON           with an environment that is there (ahalab[train] in it);
#                        --vllm-python PYTHON      and one that has ahalab[vllm]
#   scripts/gpu_check.sh --cpu                     the same without a GPU, and without vLLM: proves the script alone
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
work="$root/build/gpu-check"
device=cuda model="" python="" vllm_python="" limit_seconds=600

refuse() {
    echo "gpu_check: $1" >&2
    exit "$2"
}

while (($#)); do
    case "$1" in
    --cpu) device=cpu ;;
    --model | --python | --vllm-python)
        (($# > 1)) || refuse "expected a value after $1, found none." 2
        case "$1" in
        --model) model=$2 ;;
        --python) python=$2 ;;
        *) vllm_python=$2 ;;
        esac
        shift
        ;;
    -h | --help)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    *) refuse "expected --cpu, --model, --python or --vllm-python, found $1." 2 ;;
    esac
    shift
done
if [[ $device == cuda ]] && ! nvidia-smi -L >/dev/null 2>&1; then
    refuse "expected an NVIDIA GPU (nvidia-smi -L), found none. Run it on one, or with --cpu." 5
fi

rm -rf "$work/results" "$work/.work" "$work/table"
mkdir -p "$work"
if [[ -z $python ]]; then
    python3 -m venv "$work/venv"
    python="$work/venv/bin/python"
    "$python" -m pip install --quiet "${root}[train]"
fi
if [[ $device == cuda && -z $vllm_python ]]; then # vLLM pins a torch of its own
    python3 -m venv "$work/venv-vllm"
    "$work/venv-vllm/bin/python" -m pip install --quiet "${root}[vllm]" &&
        vllm_python="$work/venv-vllm/bin/python"
fi

row() { printf '%s\t%s\t%s\t%s\n' "$@" | tee -a "$work/table" >&2; }

plan_of() { # NAME MODEL
    local steps=8 prompts=64 answers=64
    [[ $device == cpu ]] && steps=2 prompts=16 answers=16
    cat <<PLAN
name: $1
model: {id: "$2", device: $device}
task: {name: arithmetic, train_prompts: $prompts, eval_prompts: $answers}
arms: [historical, random]
control: random
seeds: [1]
grpo:
  max_steps: $steps
  num_generations: 4
  per_device_train_batch_size: 16
  max_completion_length: 64
  learning_rate: 1e-4
lora: {r: 8}
evaluation: {max_new_tokens: 64, batch_size: 16, floor_batch_size: 12}
PLAN
}

check_model() { # NAME MODEL
    local name=$1 study="$work/results/$1" began=$SECONDS backend=vllm compared
    plan_of "$name" "$2" >"$work/$name.yaml"
    if timeout "$limit_seconds" "$python" -m ahalab run "$work/$name.yaml" --out "$work/results" --force; then
        row "$name" "train and evaluate" "$((SECONDS - began)) s" pass
    else
        row "$name" "train and evaluate" "exit code $?" FAIL
        return
    fi
    if "$python" -m ahalab verify "$study" >"$work/$name.verify"; then
        row "$name" "verify" "$(tail -n 1 "$work/$name.verify")" pass
    else
        row "$name" "verify" "see $work/$name.verify" FAIL
    fi
    "$python" "$root/scripts/gpu_compare.py" devices "$study" "$device" | while IFS=$'\t' read -r what found verdict; do
        row "$name" "$what" "$found" "$verdict"
    done
    # Without a GPU transformers is compared with itself: that shows the comparison, not vLLM.
    [[ $device == cpu ]] && backend=transformers vllm_python=$python
    if [[ -z $vllm_python ]]; then
        row "$name" "vllm" "could not be installed" "not run"
        return
    fi
    if compared=$(timeout "$limit_seconds" "$vllm_python" "$root/scripts/gpu_compare.py" answers "$study" "$backend"); then
        while IFS=$'\t' read -r what found verdict; do row "$name" "$what" "$found" "$verdict"; done <<<"$compared"
    else
        row "$name" "answers by $backend" "exit code $?" "not run"
    fi
}

check_model organism organism
[[ -z $model ]] || check_model model "$model"

echo
printf 'model\tcheck\tfound\tverdict\n' | cat - "$work/table" | column -t -s $'\t'
! grep -q 'FAIL$' "$work/table"
