"""Tables and pictures of the pages, scores of translations, and logs."""

import collections
import math
import re
import statistics

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.logging.progress_bar import SimpleProgressBar
from fairseq.models.transformer import TransformerConfig, TransformerEncoderBase

from hyptrans.seq2seq.architectures import ARCHITECTURES
from hyptrans.support.errors import UserError
from hyptrans.train import settings
from recipes import tables
from recipes.common import results, scoring, seeds
from recipes.common.translation import Run
from recipes.study.table import chosen
from recipes.trees import curvatures


def test_pages_show_exactly_the_committed_results():
    blocks = tables.blocks()
    names = {(page.parent.name, name) for page, name in blocks}
    assert names >= {("quickstart", "results"), ("study", "results"), ("probing", "checkpoints")}
    assert ("trees", "curvatures") in names
    assert {name for page, name in blocks if page == tables.README} == {"choices"}
    for (page, name), text in blocks.items():
        shown = f"<!-- {name}: begin -->\n{text}\n<!-- {name}: end -->"
        assert shown in page.read_text(encoding="utf-8"), (page.parent.name, name)


def test_parameter_count_skips_fairseqs_copies_for_inference():
    dictionary, width, wide = Dictionary(), 8, 16
    cfg = TransformerConfig()
    cfg.encoder.embed_dim, cfg.encoder.ffn_embed_dim = width, wide
    cfg.encoder.layers, cfg.encoder.attention_heads = 1, 2
    model = torch.nn.Module()
    table = torch.nn.Embedding(len(dictionary), width, dictionary.pad())
    model.encoder = TransformerEncoderBase(cfg, dictionary, table)
    attention, norms = 4 * (width * width + width), 4 * width
    feed_forward = 2 * width * wide + width + wide
    assert results.learned_numbers(model) == 4 * width + attention + feed_forward + norms


def test_pictures_are_drawn_from_the_committed_results():
    drawn = tables.drawings()
    # made twice they are the same to the byte
    assert tables.drawings() == drawn
    assert {path for path in drawn if tables.STUDY in path.parents} == set(
        tables.STUDY.rglob("*.svg")
    )
    for path, text in drawn.items():
        old, new = (parts(t) for t in (path.read_text(encoding="utf-8"), text))
        assert old[::2] == new[::2]
        # versions of matplotlib measure the height of letters differently
        assert list(map(float, old[1::2])) == pytest.approx(list(map(float, new[1::2])), abs=2)


def test_pages_state_what_eleven_trees_show():
    # p is the smallest possible only if all differences have one sign
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in results.read_lines(tables.HERE / "trees" / results.LINES):
        if line["stage"] == "forest" and line["setting"].startswith("d16-"):
            found[line["model"]][line["task"]].append(line["exact"]["test"]["all"])
    means, shown = {}, {}
    for model in ("hybonet_plus", "euclidean_prenorm", "sphere"):
        assert [len(several) for several in found[model].values()] == [3] * 11
        means[model] = {tree: statistics.fmean(own) for tree, own in found[model].items()}
        every = means[model].values()
        shown[model] = f"{statistics.fmean(every):.1f} ± {statistics.stdev(every):.1f}"
    for tree, own in means["hybonet_plus"].items():
        assert own > means["euclidean_prenorm"][tree], tree
    p = 2 / 2**11
    assert f"p = {p:.5f}".replace("0.", ".") in tables.RESULTS.read_text(encoding="utf-8")
    for page in (tables.RESULTS, tables.README):
        text = page.read_text(encoding="utf-8")
        assert all(one in text for one in shown.values())


def test_the_page_states_what_the_pictures_of_trees_and_stress_show():
    page = tables.RESULTS.read_text(encoding="utf-8")
    deepest = {m: statistics.fmean(by[4]) for m, by in tables.by_level().items()}
    shell, plus = deepest.pop("lorentz_shell"), deepest.pop("hybonet_plus")
    assert f"`lorentz_shell` ({shell:.0f} %) and `hybonet_plus` ({plus:.0f} %)" in page
    assert max(deepest.values()) <= 3
    percents = [one for by in tables.by_layer().values() for (one,) in by.values()]
    assert f"by {min(percents)} to {max(percents)} %" in page


def test_pages_state_what_fixed_curvatures_show():
    page = " ".join(tables.RESULTS.read_text(encoding="utf-8").split())
    found = tables.by_curvature()
    plus = [f"{statistics.fmean(several):.1f}" for several in found["hybonet_plus"].values()]
    assert [*found["hybonet_plus"]] == [0.01, 0.1, 1, 10, 100]
    assert f"{', '.join(plus[:-1])} and {plus[-1]} %" in page
    shell = {c: seeds.spread(several) for c, several in found["lorentz_shell"].items()}
    assert f"has {shell[10]} % (the baseline" in page
    assert re.search(rf"at .1 {shell[1]}\.", page)
    forms = results.read_lines(tables.HERE / "trees" / "forms.jsonl")
    scaled = "hybonet_plus, curvature fixed at -0.01, lengths times 10"
    tried = [x for x in forms if (x.get("form"), x.get("rate")) == (scaled, 0.01)]
    assert f"has {seeds.spread([x['exact']['test']['all'] for x in tried])} %: the unit" in page
    # "more than 10 % needs a radius of 7"
    assert curvatures.sphere_stress(6.5) < 0.1 < curvatures.sphere_stress(7)


def test_the_tree_page_states_how_far_states_are_from_those_on_a_sphere():
    measured = [
        line
        for line in results.read_lines(tables.HERE / "trees" / "forms.jsonl")
        if "stress_percent" in line
    ]
    assert len(measured) == 7
    for line in measured:
        pairs = zip(line["radius"], line["stress_percent"], strict=True)
        below = [100 * curvatures.sphere_stress(radius) - stress for radius, stress in pairs]
        # by up to .6 points, as rounded
        most = 1.45 if "-0.1" in line["form"] else 0.65
        assert min(below[:3]) > -0.15
        assert max(below[:3]) < most, line["form"]
        assert min(below[3:]) > 0, line["form"]
        assert max(line["spread_of_radii"][:3]) < 0.07
        assert max(line["spread_of_radii"]) < 0.165


def test_hyptrans_train_starts_from_the_best_settings_of_the_study():
    found = chosen(results.read_lines(tables.STUDY / results.LINES))
    for model in ARCHITECTURES.keys() & found.keys():
        tuned, name = found[model], f"{model}_iwslt_d64"
        assert settings.default_rate(name) == tuned.rate, name
        assert settings.default_dropouts(name)["dropout"] == tuned.dropout, name
    assert settings.default_rate("other_tiny") == settings.RATE


def parts(picture):
    """Split a picture into its numbers and the text between them."""
    return re.split(r"(-?\d+\.\d+)", picture)


def test_results_are_written_only_between_their_markers(tmp_path):
    page = tmp_path / "README.md"
    blocks = {name: f"<!-- {name}: begin -->\nold\n<!-- {name}: end -->\n" for name in ("a", "b")}
    page.write_text(f"# T\n\n{blocks['a']}{blocks['b']}end\n")
    assert results.put_into(page, "| own |", "b")
    new = blocks["b"].replace("old", "| own |")
    assert page.read_text() == f"# T\n\n{blocks['a']}{new}end\n"
    assert not results.put_into(page, "| own |", "b")
    with pytest.raises(UserError, match=r"README\.md lacks the lines <!-- results: begin -->"):
        results.put_into(page, "| new |")


def test_results_name_versions_cores_and_commits():
    found = results.surroundings()
    assert found["versions"].keys() >= {"python", "torch", "fairseq", "sacrebleu", "hyptrans"}
    assert found["cpu_cores"] >= 1
    versions = {"torch": "2.0", "fairseq": "0.12.2"}
    several = [{"commit": letter * 40 + " with changes", "versions": versions} for letter in "ab"]
    several.append({"commit": f"{'a' * 40}, {'c' * 40}", "versions": versions | {"torch": "2.1"}})
    said = "runs of 3 commits, torch 2.0 and 2.1, fairseq 0.12.2"
    assert results.made_by([*several, {"name": "published"}]) == said


def test_score_matches_a_hand_count_and_has_a_signature(tmp_path):
    output, references = tmp_path / "generate-test.txt", tmp_path / "test.de"
    lines = ["S-1\tb a", "T-1\tthe cat sat down.", "H-1\t-0.5\tthe cat sat up."]
    lines += ["D-1\t-0.5\tthe cat sat up.", "D-0\t-0.3\ta dog, a bird and a fox.", "D-2\t-9.9\t"]
    output.write_text("\n".join([*lines, "Generate test with beam=4: BLEU = 12.34\n"]))
    references.write_text("a dog, a bird and a fox.\nthe cat sat down.\nnothing\n")
    found = scoring.score("bleu", output, references)
    # 14 tokens against 15; of their n-grams 13/14, 10/12, 8/10 and 6/8 are in the reference
    product = 13 / 14 * 10 / 12 * 8 / 10 * 6 / 8
    expected = 100 * product**0.25 * 2.718281828459045 ** (1 - 15 / 14)
    assert found.value == pytest.approx(expected, abs=0.006)
    assert found.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    references.write_text("a\nb\n")
    with pytest.raises(UserError, match="3 translations for 2 lines"):
        scoring.score("bleu", output, references)


FLAGS = {"--arch": "hybonet_tiny", "--total-num-update": "{updates}"}


def value(command, flag):
    return command[command.index(flag) + 1]


@pytest.mark.parametrize(
    ("averaged", "save_every", "every"),
    [(1, 0, None), (1, 1000, "1000"), (5, 0, "30"), (5, 1000, "30"), (5, 20, "20")],
)
def test_last_checkpoint_or_the_average_of_kept_ones_translates(
    tmp_path, averaged, save_every, every
):
    fields = {"save_every": save_every, "averaged": averaged}
    run = Run(tmp_path, "m", FLAGS, ("en", "de"), 1, 1500, **fields)
    train = run.train()
    assert value(train, "--total-num-update") == "1500"
    assert ("--save-interval-updates" in train) == bool(every)
    if every:
        assert value(train, "--save-interval-updates") == every
        assert value(train, "--keep-interval-updates") == str(averaged)
    path = str(tmp_path / "m" / ("average.pt" if averaged > 1 else "checkpoint_last.pt"))
    assert value(run.average(), "--last") == str(averaged)
    assert value(run.average(), "--out") == path
    assert value(run.generate((5, "test")), "--path") == path


@pytest.mark.parametrize("perplexity", [9.25, 741455.0, 1.48291e6, math.inf])
def test_perplexities_are_parsed_from_fairseqs_log(tmp_path, caplog, perplexity):
    stats = {"loss": 5.0, "ppl": perplexity, "wps": 9.0, "num_updates": 150}
    with caplog.at_level("INFO"):
        SimpleProgressBar([], epoch=1).print(stats, tag="valid")
    log = tmp_path / "validate.log"
    log.write_text(f"2026-01-01 | INFO | {caplog.records[-1].name} | {caplog.messages[-1]}\n")
    assert scoring.perplexity(log) == perplexity
    # JSON has no word for what is infinite, and a picture no place
    points = [(150, perplexity)] if math.isfinite(perplexity) else []
    assert scoring.course(log)["curve"] == points


@pytest.mark.parametrize(
    ("last", "diverged"),
    [
        ("FloatingPointError: gradients are Nan/Inf", True),
        ("fairseq-train: error: gradients are NaN at update 7: lower --lr or", True),
        ("FloatingPointError: Minimum loss scale reached. Your loss is probably exploding.", True),
        ("fairseq-train: error: checkpoint a.pt cannot be written (No space left)", False),
    ],
)
def test_a_training_diverged_only_if_divergence_ended_it(tmp_path, last, diverged):
    log = tmp_path / "train.log"
    before = "| valid | epoch 001 | valid on 'valid' subset | loss 2000 | ppl inf | num_updates 150"
    log.write_text(f"{before}\n{last}\n\n", encoding="utf-8")
    assert scoring.diverged(log) is diverged
