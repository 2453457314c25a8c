"""Networks of the package transformers, from configurations: text, vision, speech; encoders and one decoder step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.corpus.entry import DELEGATED, PORTABLE, Entry, Made, Variant, image

SOURCE = "transformers"


class First(torch.nn.Module):
    """A model that takes its inputs by position and gives the one tensor of its output that matters."""

    def __init__(self, net: torch.nn.Module, names: tuple[str, ...], output: str, **fixed: Any) -> None:
        super().__init__()
        self.net = net
        self.names = names
        self.output = output
        self.fixed = fixed

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return getattr(self.net(**dict(zip(self.names, inputs, strict=True)), **self.fixed), self.output)


def _tokens(length: int, vocabulary: int = 1000) -> torch.Tensor:
    return torch.randint(0, vocabulary, (1, length))


def _model(
    kind: str,
    inputs: Callable[[], dict[str, torch.Tensor]],
    output: str = "last_hidden_state",
    call: dict[str, Any] | None = None,
    **settings: Any,
) -> Callable[[], Made]:
    """Maker of the model ``<kind>`` with its configuration's defaults but for ``settings``."""

    def make() -> Made:
        import transformers

        stem = kind.removesuffix("Model").removesuffix("Encoder")
        for tail in ("ForObjectDetection", "ForSemanticSegmentation", "ForCausalLM", "LMHead"):
            stem = stem.removesuffix(tail)
        config = getattr(transformers, f"{stem}Config")(attn_implementation="eager", **settings)
        named = inputs()
        net = getattr(transformers, kind)(config)
        return First(net, tuple(named), output, **(call or {})), tuple(named.values())

    return make


def _encoder(kind: str, **settings: Any) -> Callable[[], Made]:
    def make() -> Made:
        import transformers

        stem = kind.removesuffix("EncoderModel")
        config = getattr(transformers, f"{stem}Config")(**settings)
        net = getattr(transformers, kind)(config)
        return First(net, ("input_ids",), "last_hidden_state"), (_tokens(64),)

    return make


def _whisper() -> Made:
    from transformers import WhisperConfig, WhisperModel

    config = WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
    net = WhisperModel(config).encoder
    return First(net, ("input_features",), "last_hidden_state"), (torch.randn(1, 80, 3000),)


def _past_step() -> Made:
    """One step of GPT-2 that takes the keys and values so far and returns them with the new ones: a concat each."""
    from transformers import GPT2Config, GPT2LMHeadModel
    from transformers.cache_utils import DynamicCache

    layers, heads, width, past = 6, 12, 64, 63

    class Step(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = GPT2LMHeadModel(GPT2Config(n_layer=layers, vocab_size=1000, attn_implementation="eager"))

        def forward(self, token: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
            cache = DynamicCache()
            for k in range(layers):
                cache.update(past[2 * k], past[2 * k + 1], k)
            logits = self.net(input_ids=token, past_key_values=cache, use_cache=True).logits
            return (logits, *(t for layer in cache.layers for t in (layer.keys, layer.values)))

    caches = tuple(torch.randn(1, heads, past, width) for _ in range(2 * layers))
    return Step(), (_tokens(1), *caches)


def _text(length: int = 128) -> Callable[[], dict[str, torch.Tensor]]:
    return lambda: {"input_ids": _tokens(length), "attention_mask": torch.ones(1, length, dtype=torch.long)}


def _pixels(size: int) -> Callable[[], dict[str, torch.Tensor]]:
    return lambda: {"pixel_values": image(size)}


def _wave() -> dict[str, torch.Tensor]:
    return {"input_values": torch.randn(1, 16000)}


def _entry(name: str, make: Callable[[], Made], variants: tuple[Variant, ...] = PORTABLE) -> Entry:
    return Entry(name, SOURCE, make, variants)


SMALL = {"vocab_size": 1000}

ENTRIES = (
    _entry("distilbert", _model("DistilBertModel", _text(), **SMALL), DELEGATED),
    _entry(
        "bert_small",
        _model(
            "BertModel",
            _text(),
            num_hidden_layers=4,
            hidden_size=512,
            num_attention_heads=8,
            intermediate_size=2048,
            **SMALL,
        ),
        DELEGATED,
    ),
    _entry("mobilebert", _model("MobileBertModel", _text(), **SMALL)),
    _entry(
        "albert",
        _model("AlbertModel", _text(), hidden_size=768, num_attention_heads=12, intermediate_size=3072, **SMALL),
    ),
    _entry("gpt2", _model("GPT2Model", lambda: {"input_ids": _tokens(64)}, call={"use_cache": False}, **SMALL)),
    _entry("gpt2_past_step", _past_step, DELEGATED),
    _entry("t5_encoder", _encoder("T5EncoderModel", num_layers=6, **SMALL)),
    _entry("vit_b_16", _model("ViTModel", _pixels(224)), DELEGATED),
    _entry(
        "deit_tiny", _model("DeiTModel", _pixels(224), hidden_size=192, num_attention_heads=3, intermediate_size=768)
    ),
    _entry("swin_tiny", _model("SwinModel", _pixels(224)), DELEGATED),
    _entry("segformer_b0", _model("SegformerForSemanticSegmentation", _pixels(256), "logits"), DELEGATED),
    _entry("mobilevit_small", _model("MobileViTModel", _pixels(256))),
    _entry("convnext_tiny", _model("ConvNextModel", _pixels(224)), DELEGATED),
    _entry("poolformer_s12", _model("PoolFormerModel", _pixels(224))),
    _entry("dinov2_small", _model("Dinov2Model", _pixels(224), hidden_size=384, num_attention_heads=6, image_size=224)),
    _entry(
        "yolos_tiny",
        _model(
            "YolosForObjectDetection",
            _pixels(256),
            "logits",
            hidden_size=192,
            num_attention_heads=3,
            intermediate_size=768,
            image_size=[256, 256],
            use_mid_position_embeddings=False,
        ),
    ),
    _entry("whisper_tiny_encoder", _whisper, DELEGATED),
    _entry(
        "wav2vec2_small",
        _model(
            "Wav2Vec2Model", _wave, num_hidden_layers=4, hidden_size=256, num_attention_heads=4, intermediate_size=1024
        ),
    ),
)
