#!/usr/bin/env bash
# Guess: load_dataset("json") leaves strings alone; a date between quotes stays a string, as with json.loads and Dataset.from_list.
# Seen: a column that holds nothing but dates such as "2024-01-31" (or dates with times) becomes a timestamp, and its values datetimes. One
# other string among them, and in a small file the same dates stay strings; times of day alone stay strings too.
# Matters: the targets of date normalization, or answers that are dates, become "2024-01-31 00:00:00" in training, and a small split gets
# another type than the whole.
# Versions: datasets 5.2.0, pyarrow 26.0.1; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages datasets==5.2.0 pyarrow==26.0.1 numpy==2.4.6
"$python" - <<'PY'
import json
import os
import tempfile

with tempfile.TemporaryDirectory() as folder:
    os.environ["HF_HOME"] = folder
    import datasets
    from finding import seen, versions

    versions("datasets", "pyarrow")
    datasets.disable_progress_bars()

    def read(*targets: str) -> list:
        """The column's type and its first value, read from a file that holds these strings."""
        path = f"{folder}/{len(os.listdir(folder))}.jsonl"
        with open(path, "w") as file:
            file.writelines(json.dumps({"target": target}) + "\n" for target in targets)
        read = datasets.load_dataset("json", data_files=path, split="train")
        return [read.features["target"].dtype, str(read[0]["target"])]

    date = "2024-01-31"
    seen("dates", read(date, "2023-05-06"), ["timestamp[s]", "2024-01-31 00:00:00"])
    seen("dates with times", read("2024-01-31 10:00:00"), ["timestamp[s]", "2024-01-31 10:00:00"])
    seen("dates and a word", read(date, "today"), ["string", date])
    seen("times of day", read("10:00:00"), ["string", "10:00:00"])
    listed = datasets.Dataset.from_list([{"target": date}])
    seen("from_list", [listed.features["target"].dtype, listed[0]["target"]], ["string", date])
PY
