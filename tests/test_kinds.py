"""Kinds of faults that users of such programs report, each with the tests that keep it away.

A new fault belongs to one of these kinds, or begins a row.
"""

import pytest

from tests.forks import ROOT

OPTIONS = "startup/commands/test_asked.py::test_it_obeys_or_refuses"
CHECKED = "startup/training/test_validating.py::test_it_is_refused_before_the_first_update"
FOLDERS = "inference/test_folder.py::test_a"

KINDS = {
    "an answer from nothing": {
        "systems that do not differ have p = 1": "evaluation/test_scores.py::"
        "test_p_is_1_where_no_choice_of_sentences_makes_a_difference",
        "probes of sentences of one word": "probing/probes/test_training.py::"
        "test_sets_of_one_word_sentences_alone_are_refused",
        "trees with nothing to learn": "probing/commands/test_errors.py::"
        "test_trees_with_nothing_to_learn_are_refused_before_any_work",
        "constant predictions": "probing/probes/test_metrics.py::"
        "test_constant_predictions_have_no_correlation_and_leave_it_to_the_others",
        "rows that are tied or constant": "probing/probes/test_metrics.py::"
        "test_spearman_equals_scipy_with_ties_and_constants",
        "points that are all one": "probing/geometry/test_measures.py::"
        "test_equal_points_have_no_delta",
    },
    "an option that is ignored, or ends in a traceback": {
        "each has a row": "startup/commands/test_asked.py::test_every_option_has_a_row_or_a_reason",
        "beam, groups, constraints, alignments, steps, shards, scorers, subwords": OPTIONS,
        "what has a reason": "startup/commands/test_asked.py::"
        "test_what_has_a_reason_changes_nothing",
        "shards": "startup/commands/test_asked.py::test_shards_divide_the_set",
        "fairseq-score, texts of unequal length too": "startup/commands/test_asked.py::"
        "test_score_obeys_or_refuses",
        "n-grams that may stand once": "startup/compat/test_torchscript.py::"
        "test_sequence_generator_is_scripted",
        "patience, over two runs": "startup/training/test_validating.py::"
        "test_patience_is_counted_over_a_resume",
        "models of no layers or heads": CHECKED,
        "--help beside all others": "startup/commands/test_commands.py::"
        "test_help_is_help_whatever_else_is_typed",
    },
    "an epoch that is lost": {
        "metrics, subsets, long sentences": CHECKED,
        "a folder of two trainings": "startup/training/test_validating.py::"
        "test_a_folder_that_another_training_writes_to_is_refused",
        "a validation that fails": "startup/training/test_validating.py::"
        "test_a_validation_that_fails_keeps_the_weights",
    },
    "a program around the model": {
        "pickles and processes": "inference/test_load.py::"
        "test_a_model_goes_to_other_processes_and_into_files",
        "another default device": "inference/test_load.py::"
        "test_where_a_program_makes_its_tensors_changes_nothing",
        "python -OO": "inference/test_alone.py::test_an_interpreter_that_drops_docstrings_is_"
        "refused_in_one_sentence_where_geoopt_is_needed",
        "pointers of Git LFS": f"{FOLDERS}_pointer_of_git_lfs_is_named_as_what_it_is",
        "a byte order mark": f"{FOLDERS}_byte_order_mark_before_the_configuration_is_no_damage",
        "zh-Hans and en-us in stored options": "startup/checkpoints/test_checkpoints.py::"
        "test_options_are_taken_as_declared_and_none_names_a_place",
        "training text as test text": "data/commands/test_text.py::"
        "test_training_text_that_is_to_measure_it_is_told",
        "a terminal that a file writes to": "startup/commands/test_messages.py::"
        "test_a_terminal_is_shown_nothing_that_it_acts_on",
        "folders of what never began": "startup/training/test_validating.py::"
        "test_a_training_that_never_begins_leaves_no_folder",
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_tested(kind):
    for path, _, name in (test.partition("::") for test in KINDS[kind].values()):
        text = (ROOT / "tests" / path).read_text(encoding="utf-8")
        assert f"def {name}(" in text or not name, name
