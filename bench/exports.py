#!/usr/bin/env python3
"""Models as PyTorch's two exporters write them, with open dims and random weights.

  exports.py OUTDIR [NAME ...] [--half]   (run by .deps/exports/bin/python3, which `scripts/deps.sh
                                    --exports` makes)

Writes OUTDIR/NAME_ts.onnx (torch.onnx.export as it was, by tracing, opset 17) and NAME_dyn.onnx
(by torch.export, opset 18) for every name, with --half both of the model in half precision, as
NAME_half_ts.onnx and NAME_half_dyn.onnx: text classifiers and encoders, image classifiers, a
text encoder that reads one token of each sample, decoders with a cache. Sizes are those of small
models that people use, or a few layers of larger ones. Then

  bench/fleet.py --config open --fresh 4 --models OUTDIR

runs petopt on all of them.
"""
import argparse
import os
import sys
import warnings

import torch
import transformers as hf
from transformers.cache_utils import DynamicCache

VOCABULARY = 1000
torch.manual_seed(0)


class Calls(torch.nn.Module):
    """A model with another forward."""

    def __init__(self, model, forward):
        super().__init__()
        self.model = model
        self.call = forward

    def forward(self, *inputs):
        return self.call(self.model, *inputs)


class SharedHeads(torch.nn.Module):
    """A decoder's layer whose heads of keys and values are repeated, as exporters wrote it before
    attention was one operator: Expand and Reshape of the whole cache."""

    def __init__(self, width=1024, heads=16, shared=4, inner=2816):
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads

        def linear(a, b):
            return torch.nn.Linear(a, b, bias=False)

        self.query, self.out = linear(width, width), linear(width, width)
        self.key = linear(width, shared * self.size)
        self.value = linear(width, shared * self.size)
        self.gate, self.up, self.down = linear(width, inner), linear(width, inner), linear(inner, width)
        self.before, self.between = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)

    def repeated(self, x):
        n, h, s, d = x.shape
        times = self.heads // self.shared
        return x[:, :, None].expand(n, h, times, s, d).reshape(n, h * times, s, d)

    def forward(self, x, past_key, past_value, mask):
        n, t, c = x.shape
        h = self.before(x)
        q = self.query(h).view(n, t, self.heads, self.size).transpose(1, 2)
        k = self.key(h).view(n, t, self.shared, self.size).transpose(1, 2)
        v = self.value(h).view(n, t, self.shared, self.size).transpose(1, 2)
        k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
        scores = q @ self.repeated(k).transpose(2, 3) / self.size**0.5 + mask
        y = (torch.softmax(scores, -1) @ self.repeated(v)).transpose(1, 2).reshape(n, t, c)
        x = x + self.out(y)
        h = self.between(x)
        return x + self.down(torch.nn.functional.silu(self.gate(h)) * self.up(h)), k, v


def bert(layers, width, read, **more):
    config = hf.BertConfig(vocab_size=VOCABULARY, num_hidden_layers=layers, hidden_size=width,
                           num_attention_heads=12, intermediate_size=4 * width, **more)
    if read == 'logits':
        model = hf.BertForSequenceClassification(config)
        return Calls(model, lambda m, i, a: m(input_ids=i, attention_mask=a).logits)
    return Calls(hf.BertModel(config),
                 lambda m, i, a: read(m(input_ids=i, attention_mask=a).last_hidden_state, a))


def first_token(hidden, _):
    return torch.nn.functional.normalize(hidden[:, 0], dim=-1)


def mean(hidden, mask):
    kept = mask.unsqueeze(-1).float()
    return torch.nn.functional.normalize(
        (hidden * kept).sum(1) / kept.sum(1).clamp(min=1e-9), dim=-1)


def text(model):
    """Ids and a mask [batch, tokens]."""
    ids = torch.randint(5, VOCABULARY, (2, 16))
    mask = torch.ones(2, 16, dtype=torch.long)
    axes = {0: 'batch', 1: 'tokens'}
    batch, tokens = torch.export.Dim('batch', max=64), torch.export.Dim('tokens', min=2, max=512)
    return {'model': model, 'inputs': (ids, mask), 'names': ['input_ids', 'attention_mask'],
            'outputs': ['out'],
            'axes': {'input_ids': axes, 'attention_mask': axes, 'out': {0: 'batch'}},
            'shapes': (({0: batch, 1: tokens}, {0: batch, 1: tokens}),)}


def distilbert():
    config = hf.DistilBertConfig(vocab_size=VOCABULARY, n_layers=6)
    return text(Calls(hf.DistilBertForSequenceClassification(config),
                      lambda m, i, a: m(input_ids=i, attention_mask=a).logits))


def clip_text():
    config = hf.CLIPTextConfig(vocab_size=VOCABULARY, num_hidden_layers=6, hidden_size=512,
                               bos_token_id=1, eos_token_id=VOCABULARY - 1)
    return text(Calls(hf.CLIPTextModelWithProjection(config),
                      lambda m, i, a: m(input_ids=i, attention_mask=a).text_embeds))


def image(name):
    """A network of timm for images; what its batch norms have seen is drawn, as if it were
    trained."""
    import timm
    model = timm.create_model(name, pretrained=False)
    for m in model.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.running_mean.normal_(0, 0.1)
            m.running_var.uniform_(0.5, 1.5)
    return {'model': model, 'inputs': (torch.randn(2, *model.pretrained_cfg['input_size']),),
            'names': ['x'], 'outputs': ['out'], 'axes': {'x': {0: 'batch'}, 'out': {0: 'batch'}},
            'shapes': ({0: torch.export.Dim('batch', max=64)},)}


def shared_heads():
    n, t, past = 2, 3, 7
    cache = torch.randn(n, 4, past, 64)
    return {'model': SharedHeads(),
            'inputs': (torch.randn(n, t, 1024), cache, cache.clone(), torch.zeros(n, 1, t, t + past)),
            'names': ['x', 'past_key', 'past_value', 'mask'], 'outputs': ['y', 'key', 'value'],
            'axes': {'x': {0: 'batch', 1: 'tokens'}, 'past_key': {0: 'batch', 2: 'past'},
                     'past_value': {0: 'batch', 2: 'past'},
                     'mask': {0: 'batch', 2: 'tokens', 3: 'total'}, 'y': {0: 'batch', 1: 'tokens'},
                     'key': {0: 'batch', 2: 'total'}, 'value': {0: 'batch', 2: 'total'}}}


def decoder(model, layers, shared, size):
    def forward(m, ids, mask, *past):
        cache = DynamicCache()
        for i in range(layers):
            cache.update(past[2 * i], past[2 * i + 1], i)
        o = m(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        return (o.logits, *[x for l in o.past_key_values.layers for x in (l.keys, l.values)])

    n, t, past = 2, 3, 7
    names = [f'{what}_{i}' for i in range(layers) for what in ('past_key', 'past_value')]
    axes = {'input_ids': {0: 'batch', 1: 'tokens'}, 'attention_mask': {0: 'batch', 1: 'total'},
            'logits': {0: 'batch', 1: 'tokens'}}
    for name in names:
        axes[name] = {0: 'batch', 2: 'past'}
        axes[name.replace('past', 'present')] = {0: 'batch', 2: 'total'}
    return {'model': Calls(model, forward),
            'inputs': (torch.randint(5, VOCABULARY, (n, t)),
                       torch.ones(n, t + past, dtype=torch.long),
                       *[torch.randn(n, shared, past, size) for _ in names]),
            'names': ['input_ids', 'attention_mask', *names],
            'outputs': ['logits', *[x.replace('past', 'present') for x in names]], 'axes': axes}


def qwen():
    config = hf.Qwen2Config(vocab_size=VOCABULARY, hidden_size=896, intermediate_size=2432,
                            num_hidden_layers=2, num_attention_heads=14, num_key_value_heads=2,
                            max_position_embeddings=4096, attn_implementation='eager')
    return decoder(hf.Qwen2ForCausalLM(config), 2, 2, 64)


MODELS = {
    'minilm_classifier': lambda: text(bert(6, 384, 'logits')),
    'distilbert_classifier': distilbert,
    'bge_first_token': lambda: text(bert(12, 384, first_token)),
    'sentence_mean': lambda: text(bert(3, 384, mean)),
    'clip_text': clip_text,
    'deit_tiny': lambda: image('deit_tiny_patch16_224'),
    'shared_heads': shared_heads,
    'qwen_two_layers': qwen,
    'efficientnet': lambda: image('efficientnet_b0'),
    'mobilenet_v3': lambda: image('mobilenetv3_large_100'),
    'mobilevit': lambda: image('mobilevit_s'),
    'regnet_y': lambda: image('regnety_004'),
    'levit': lambda: image('levit_128s'),
    'edgenext': lambda: image('edgenext_xx_small'),
    'convnext_atto': lambda: image('convnext_atto'),
}


def halved(made):
    return {**made, 'model': made['model'].half(),
            'inputs': tuple(x.half() if x.is_floating_point() else x for x in made['inputs'])}


def export(made, path, traced):
    model = made['model'].eval()
    if traced:
        torch.onnx.export(model, made['inputs'], path, input_names=made['names'],
                          output_names=made['outputs'], dynamic_axes=made['axes'],
                          opset_version=17, dynamo=False)
    else:
        torch.onnx.export(model, made['inputs'], path, input_names=made['names'],
                          output_names=made['outputs'], dynamic_shapes=made['shapes'],
                          opset_version=18, dynamo=True, external_data=False)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('outdir')
    p.add_argument('--half', action='store_true', help='in half precision')
    p.add_argument('names', nargs='*', metavar='NAME', help=', '.join(MODELS))
    a = p.parse_args()
    warnings.filterwarnings('ignore')
    os.makedirs(a.outdir, exist_ok=True)
    for name in a.names or MODELS:
        made = MODELS[name]()
        if a.half:
            made = halved(made)
            name += '_half'
        for traced in (True, False):
            if not traced and 'shapes' not in made:
                continue
            path = os.path.join(a.outdir, f'{name}_{"ts" if traced else "dyn"}.onnx')
            export(made, path, traced)
            print(f'{path}: {os.path.getsize(path) / 1e6:.0f} MB')


if __name__ == '__main__':
    sys.exit(main())
