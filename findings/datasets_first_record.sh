#!/usr/bin/env bash
# Guess: Dataset.from_list makes a column of every key that any record has, and puts None where a record lacks it.
# Seen: the first record's keys alone are columns; a key that comes up later is dropped without a word. In nested
# records keys are merged.
# Matters: lists of examples with optional fields (a second reference, a parse) lose them if the first has none.
# Versions: datasets 5.2.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages datasets==5.2.0 numpy==2.4.6
"$python" - <<'PY'
from datasets import Dataset
from finding import seen, versions

versions("datasets")
records = [{"text": "one"}, {"text": "two", "parse": "(two)"}]
seen("as given", Dataset.from_list(records)[:], {"text": ["one", "two"]})
seen("in reverse", Dataset.from_list(records[::-1])[:], {"text": ["two", "one"], "parse": ["(two)", None]})
nested = Dataset.from_list([{"it": record} for record in records])[1]
seen("nested", nested, {"it": {"text": "two", "parse": "(two)"}})
PY
