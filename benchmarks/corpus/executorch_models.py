"""Networks of ExecuTorch's own examples folder: MLPerf tiny, LSTM, a llama's decode step with its caches."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.corpus.entry import ALL, DELEGATED, PORTABLE, Entry, Made, Variant

SOURCE = "executorch.examples.models"


def _example(module: str, kind: str) -> Callable[[], Made]:
    def make() -> Made:
        example = getattr(importlib.import_module(f"{SOURCE}.{module}"), kind)()
        return example.get_eager_model(), tuple(example.get_example_inputs())

    return make


def _llama(layers: int, cached: bool) -> Callable[[], Made]:
    """A llama of stories15M's shape: one token with caches of 128, or 64 tokens without."""

    def make() -> Made:
        from executorch.examples.models.llama.llama_transformer import construct_transformer
        from executorch.examples.models.llama.model_args import ModelArgs

        shape: dict[str, Any] = {"dim": 288, "n_layers": layers, "n_heads": 6, "vocab_size": 2000, "hidden_dim": 768}
        sizes = {"max_seq_len": 128, "max_context_len": 128}
        net = construct_transformer(ModelArgs(use_kv_cache=cached, generate_full_logits=False, **shape, **sizes))
        if not cached:
            return net, (torch.randint(0, 2000, (1, 64)),)

        class Step(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.net = net

            def forward(self, token: torch.Tensor, position: torch.Tensor) -> Any:
                return self.net(token, {"input_pos": position})

        return Step(), (torch.randint(0, 2000, (1, 1)), torch.tensor([5]))

    return make


def _entry(name: str, make: Callable[[], Made], variants: tuple[Variant, ...] = PORTABLE) -> Entry:
    return Entry(name, SOURCE, make, variants)


ENTRIES = (
    _entry("mlperf_resnet8", _example("mlperf_tiny", "ResNet8Model"), ALL),
    _entry("mlperf_ds_cnn", _example("mlperf_tiny", "DSCNNKWSModel"), ALL),
    _entry("mlperf_mobilenet_v1_025", _example("mlperf_tiny", "MobileNetV1025Model"), ALL),
    _entry("mlperf_deep_autoencoder", _example("mlperf_tiny", "DeepAutoEncoderModel"), DELEGATED),
    _entry("lstm", _example("lstm", "LSTMModel")),
    _entry("llama_step", _llama(6, True), DELEGATED),
    _entry("llama_prefill", _llama(6, False)),
)
