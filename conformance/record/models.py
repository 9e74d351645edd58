"""Small models, the same on every rank, and the samples of a step."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from conformance.case import Case
from conformance.shapes import Configured, Decoder, Mlp

SEED = 7


class Perceptron(nn.Module):
    def __init__(self, shape: Mlp):
        super().__init__()
        pairs = zip(shape.widths, shape.widths[1:], strict=False)
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=shape.biases) for a, b in pairs)

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            x = layer(x if number == 0 else F.gelu(x))
        return x


def turned(x, angles):
    """Features in pairs, turned by the angles of their positions."""
    cos, sin = angles
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


def fused(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Attention(nn.Module):
    def __init__(self, shape: Decoder):
        super().__init__()
        self.head_dim = shape.hidden // shape.heads
        self.attend = fused if shape.fused else None
        inner, keys = shape.heads * self.head_dim, shape.kv_heads * self.head_dim
        self.wq = nn.Linear(shape.hidden, inner, bias=shape.gpt)
        self.wk = nn.Linear(shape.hidden, keys, bias=shape.gpt)
        self.wv = nn.Linear(shape.hidden, keys, bias=shape.gpt)
        self.wo = nn.Linear(inner, shape.hidden, bias=shape.gpt)

    def forward(self, x, angles, mask):
        b = x.shape[0]
        q, k, v = (w(x) for w in (self.wq, self.wk, self.wv))
        q, k, v = (y.view(b, -1, y.shape[-1] // self.head_dim, self.head_dim) for y in (q, k, v))
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        if angles:
            q, k = turned(q, angles), turned(k, angles)
        repeats = q.shape[1] // k.shape[1]
        if repeats > 1:
            k, v = (y.repeat_interleave(repeats, dim=1) for y in (k, v))
        if self.attend:
            out = self.attend(q, k, v)
        else:
            scores = q @ k.transpose(-2, -1) * self.head_dim**-0.5
            out = F.softmax(scores + mask, dim=-1) @ v
        return self.wo(out.transpose(1, 2).reshape(b, out.shape[2], -1))


class FeedForward(nn.Module):
    def __init__(self, shape: Decoder):
        super().__init__()
        self.gpt = shape.gpt
        self.w1 = nn.Linear(shape.hidden, shape.feed_forward, bias=shape.gpt)
        self.w2 = nn.Linear(shape.feed_forward, shape.hidden, bias=shape.gpt)
        if not shape.gpt:
            self.w3 = nn.Linear(shape.hidden, shape.feed_forward, bias=False)

    def forward(self, x):
        return self.w2(F.gelu(self.w1(x)) if self.gpt else F.silu(self.w1(x)) * self.w3(x))


def norm(shape: Decoder):
    return nn.LayerNorm(shape.hidden) if shape.gpt else nn.RMSNorm(shape.hidden, eps=1e-6)


class Layer(nn.Module):
    def __init__(self, shape: Decoder):
        super().__init__()
        self.attention_norm = norm(shape)
        self.attention = Attention(shape)
        self.mlp_norm = norm(shape)
        self.mlp = FeedForward(shape)

    def forward(self, x, angles, mask):
        x = x + self.attention(self.attention_norm(x), angles, mask)
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    """`layers`: those of a stage, all by default. Without words at an end that another stage has."""

    def __init__(self, shape: Decoder, layers=None, first=True, last=True):
        super().__init__()
        self.shape = shape
        if first:
            self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
            self.places = nn.Embedding(shape.sequence, shape.hidden) if shape.gpt else None
        chosen = range(shape.layers) if layers is None else layers
        self.layers = nn.ModuleDict({str(n): Layer(shape) for n in chosen})
        if last:
            self.norm = norm(shape)
            self.head = nn.Linear(shape.hidden, shape.vocabulary, bias=False)
            if shape.gpt:
                self.head.weight = self.embedding.weight
        self.first, self.last = first, last
        self.mine = slice(None)  # the positions of a rank

    def constants(self, like):
        shape = self.shape
        half = shape.hidden // shape.heads // 2
        at = torch.arange(shape.sequence, dtype=torch.float64)
        turns = at[:, None] * 100.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        turns = torch.cat((turns, turns), dim=-1)
        later = torch.full((shape.sequence, shape.sequence), float("-inf")).triu(1)
        angles = None if shape.gpt else (turns.cos().to(like), turns.sin().to(like))
        return angles, later.to(like)

    def forward(self, x):
        dtype = next(self.parameters()).dtype if self.first else x.dtype
        angles, mask = self.constants(dtype)
        if self.first:
            places = torch.arange(x.shape[1])
            x = self.embedding(x) + self.places(places) if self.places else self.embedding(x)
        for layer in self.layers.values():
            x = layer(x, angles, mask)
        return self.head(self.norm(x)) if self.last else x


class Configuration(nn.Module):
    """A model of transformers, called with tokens, that gives logits.

    `attention`: how it is computed; by default as transformers chooses. `again`: its layers are
    checkpointed.
    """

    def __init__(self, shape: Configured, attention=None, again=False):
        super().__init__()
        from transformers import AutoConfig, AutoModelForCausalLM, logging

        logging.set_verbosity_error()  # of tokens beyond the words, which nothing reads
        config = AutoConfig.for_model(**shape.content, use_cache=False)
        drops = {name for name in vars(config) if name.endswith(("pdrop", "dropout"))}
        for name in drops:
            setattr(config, name, 0.0)
        how = {"experts_implementation": "eager"}  # a kernel of all at once takes no rows of 27
        how |= {"attn_implementation": attention} if attention else {}
        self.model = AutoModelForCausalLM.from_config(config, **how)
        if again:
            self.model.gradient_checkpointing_enable()

    @property
    def layers(self):
        """Those of the model that are in a list of their own."""
        return next(of for of in self.model.modules() if isinstance(of, nn.ModuleList))

    def forward(self, x):
        return self.model(x).logits


KINDS = {Mlp: Perceptron, Decoder: Transformer, Configured: Configuration}


def build(shape, dtype, **how):
    """The whole model, with the same values each time."""
    torch.manual_seed(SEED)
    model = KINDS[type(shape)](shape, **how)
    return model if dtype == torch.get_default_dtype() else model.to(dtype)


def samples(case: Case, dtype, step, micro_step, sources):
    """Inputs and targets of all ranks that have samples of their own, one after the other."""
    torch.manual_seed(1000 * step + micro_step)
    count, shape = case.samples * sources, case.model
    if isinstance(shape, Mlp):
        x = torch.randn(count, shape.widths[0], dtype=torch.float64)
        return x.to(dtype), torch.randn(count, shape.widths[-1], dtype=torch.float64).to(dtype)
    tokens = torch.randint(shape.vocabulary, (count, shape.sequence + 1))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def loss_of(output, target):
    """The mean over samples, or tokens; in the precision of what is not computed in bf16."""
    if target.is_floating_point():
        return F.mse_loss(output.to(target.dtype), target)
    output = output.float() if output.dtype == torch.bfloat16 else output
    return F.cross_entropy(output.flatten(0, 1), target.flatten())
