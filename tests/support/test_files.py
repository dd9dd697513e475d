import json
import math

import pytest

from hyptrans.support.files import remove, sha256, whole_file, write_json, write_whole


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "new folder" / "file"
    with whole_file(path) as file:
        file.write(b"half")
        file.flush()
        assert not path.exists()
        file.write(b" and half")
    assert path.read_bytes() == b"half and half"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_file_stays_as_it_was_when_writing_stops(tmp_path, error):
    path = tmp_path / "file"
    write_whole(path, "old")

    def write_and_stop():
        with whole_file(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write_and_stop()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_text_is_written_as_utf8_with_its_line_ends(tmp_path):
    write_whole(tmp_path / "file", "größer\r\nß\n")
    assert (tmp_path / "file").read_bytes() == "größer\r\nß\n".encode()


def test_json_has_null_for_what_it_has_no_word_for(tmp_path):
    values = {"nan": math.nan, "deep": [{"inf": math.inf}, (1.5, -math.inf)], "ä": 2}
    write_json(tmp_path / "file", values)
    text = (tmp_path / "file").read_text(encoding="utf-8")
    assert json.loads(text) == {"nan": None, "deep": [{"inf": None}, [1.5, None]], "ä": 2}
    assert '"ä"' in text
    assert text.endswith("}\n")


def test_what_is_no_json_leaves_the_old_file(tmp_path):
    write_json(tmp_path / "file", {"a": 1})
    with pytest.raises(TypeError):
        write_json(tmp_path / "file", {"a": object()})
    assert json.loads((tmp_path / "file").read_text()) == {"a": 1}


def test_hash_of_a_folder_depends_on_names_and_contents_alone(tmp_path):
    for folder, names in {"a": "xy", "b": "yx", "c": "xz"}.items():
        for name in names:
            write_whole(tmp_path / folder / "in" / name, "y" if name == "z" else name)
    assert sha256(tmp_path / "a") == sha256(tmp_path / "b") != sha256(tmp_path / "c")
    write_whole(tmp_path / "b" / "in" / "x", "other")
    assert sha256(tmp_path / "a") != sha256(tmp_path / "b")


def test_remove_takes_files_folders_links_and_what_is_not_there(tmp_path):
    write_whole(tmp_path / "folder" / "kept", "")
    write_whole(tmp_path / "file", "")
    write_whole(tmp_path / "full" / "deep" / "file", "")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for name in ("file", "full", "link", "missing"):
        remove(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert (tmp_path / "folder" / "kept").exists()
