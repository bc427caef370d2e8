"""Texts compared by n-grams of their characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge import character_ngrams
from contextgauge.character_ngrams import folded, grams, share_of_grams


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Go on", [" go ", " on "]),
        ("dates", [" dat", "date", "ates", "tes "]),
        ("数据库", ["数据", "据库"]),
        ("主", ["主"]),
        ("APIを", [" api", "api ", "を"]),
        ("로그는", ["로그", "그는"]),
        ("ที่นี่", [" ที", "ที่", "ี่น", "่นี", "นี่", "ี่ "]),
        ("لا", [" لا", "لا "]),
        ("", []),
        (" — !", []),
    ],
)
def test_n_depends_on_the_script(text: str, parts: list[str]) -> None:
    assert grams(text) == parts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＡＰＩ v2", "api V2"),
        ("Straße", "STRASSE"),
        ("كُتِبَ", "كتب"),
        ("كـتـاب", "كتاب"),
        ("ﾃﾞｰﾀ", "データ"),
    ],
)
def test_spellings_of_one_word_are_one(one: str, other: str) -> None:
    assert folded(one) == folded(other)


def test_all_of_unicode_is_folded_and_little_of_it_remembered() -> None:
    text = "".join(map(chr, range(0x30000)))
    assert folded(text) == folded(text)
    assert len(character_ngrams._FOLDING) <= 40_000  # noqa: SLF001 -- what a hostile text could fill


def test_punctuation_is_no_part_of_a_word() -> None:
    assert folded("a_b-c: «d»") == " a_b c d "
    assert folded("推送到 main。") == " 推送到 main "


@given(st.text(), st.text())
def test_a_text_has_all_of_its_own_grams(other: str, text: str) -> None:
    parts = grams(text)
    assert share_of_grams(parts, folded(text)) == 1.0
    assert 0.0 <= share_of_grams(parts, folded(other)) <= 1.0


def test_an_inflected_word_shares_more_than_another_word() -> None:
    for word, inflected, other in (
        ("Datenbank", "Datenbankanbindung", "Dateigröße"),
        ("базу данных", "базы данных", "каждый день"),
        ("데이터베이스를", "데이터베이스는", "버튼은"),
        ("القاعدة", "بقاعدة", "الزر"),
    ):
        parts = grams(word)
        assert share_of_grams(parts, folded(inflected)) > 0.4 > share_of_grams(parts, folded(other))
