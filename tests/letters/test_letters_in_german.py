"""Letters in German, and in a language from outside: no English is left, whatever is promised about which model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from letter_writing import as_read_by_people, as_read_by_programs, raw_model
from networks import small_network
from own_fits import PIPELINES, fitted, loans
from problems import random_training_set, refused_people
from rocerf import EstimatorModel, Letter, LogisticModel, Recourses, Rocerf, Status, from_pipeline
from rocerf.baselines.roar import ParameterBox
from rocerf.errors import FileFormatError
from rocerf.promises import LocalLinear, Plain, Simulated
from rocerf.storage.seals import sealed
from rocerf.words import Language, language_named, register_language
from rocerf.words import language as registry

GERMAN = language_named("de")
ISSUED, UNTIL = date(2026, 11, 15), date(2027, 6, 30)
FEW = Simulated(validity=0.9, shaping=5, choosing=10, checking=10)


def words_in(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+", text.lower()))


def words_of(language: Language) -> set[str]:
    """All words of a language's sentences, without the names of what is filled in."""
    sentences = language.sentences.values()
    texts = [
        text for s in sentences for text in ([s] if isinstance(s, str) else [s[form] for form in s if form != "of"])
    ]
    return words_in(re.sub(r"\{.*?\}", " ", " ".join((*texts, *language.months))))


#: Words that only English has.
ENGLISH_ONLY = words_of(language_named("en")) - words_of(GERMAN)


def of_the_user(letter: Letter) -> set[str]:
    """Words that came with the data: names of people, columns, categories and units."""
    details = [d for option in letter.options for d in option.changes]
    texts = [str(letter.person), *letter.not_given, *letter.unreadable, *(letter.refusal_reasons or ())]
    texts += [f"{d.label} {d.feature} {d.unit} {d.before} {d.after}" for d in details]
    texts += [f"{d.label} {d.feature} {d.unit} {d.value}" for d in letter.held]
    return words_in(" ".join(texts))


def assert_german(letter: Letter, *names: str) -> None:
    text = re.sub(r"\w+\(\w+=.*?\)", "", " ".join(letter.to_text().split()))  # code stays code: Estimator(tol=0.1)
    for name in names:
        text = text.replace(name, "")
    assert words_in(text) & ENGLISH_ONLY <= of_the_user(letter), text
    page = re.sub(r"<style>.*?</style>", "", letter.to_html(), flags=re.DOTALL)
    assert '<html lang="de">' in page
    # A point stands only before three digits; whatever else is German uses a comma.
    assert not re.findall(r"\d\.(?!\d{3}(?!\d))\d", text), text


def letters_of(explainer: Rocerf, people: Any, **options: Any) -> tuple[Letter, ...]:
    answers = explainer.explain(people)
    assert answers.answered.any()
    return explainer.letters(answers, valid_until=UNTIL, issued=ISSUED, language="de", **options)


# --- every way a request can end, every promise, every kind of model ------------------------------


def test_the_word_list_finds_english() -> None:
    assert {"the", "accepted", "application", "deletions", "retrained", "march", "proven"} <= ENGLISH_ONLY
    assert not {"in", "modell", "rate", "pipeline", "november"} & ENGLISH_ONLY


@pytest.mark.slow
@pytest.mark.parametrize("status", [status for status in Status if status is not Status.NO_FURTHER])
def test_every_status(status: Status) -> None:
    model, people = raw_model()
    explainer = Rocerf(model, 1, promise="first_order")
    answers = explainer.explain(people[:6])
    if status is not Status.ANSWERED:
        nobody = np.full_like(answers.matrix, np.nan)
        answers = replace(answers, statuses=(status,) * 6, reasons=("internal words",) * 6, matrix=nobody)
    for letter in explainer.letters(answers, valid_until=None, issued=ISSUED, language="de"):
        assert_german(letter)
        assert GERMAN.say(f"letters.{letter.status.code}") in " ".join(letter.to_text().split())
        assert json.loads(letter.to_json())["language"] == "de"


@pytest.mark.parametrize("status", Status)
def test_statuses_and_reasons_can_be_said_in_german(status: Status) -> None:
    assert not words_in(status.sentence.in_language("de")) & ENGLISH_ONLY


LOGISTIC: list[Any] = [
    pytest.param(lambda model: Rocerf(model, 3), id="retrained"),
    pytest.param(lambda model: Rocerf(model, 1, promise="certified", delta=0.0625), id="certified"),
    pytest.param(lambda model: Rocerf(model, 3, promise="first_order", delta=0.1), id="first_order"),
    pytest.param(lambda model: Rocerf(model, 3, promise=FEW), id="simulated"),
    pytest.param(lambda model: Rocerf(model, 3, promise=replace(FEW, retraining="warm")), id="warm"),
    pytest.param(lambda model: Rocerf(model, 0, promise=Plain(model)), id="plain"),
    pytest.param(lambda model: Rocerf(model, 0, promise=ParameterBox(model, 0.05)), id="box"),
]


@pytest.mark.parametrize("explainer", LOGISTIC)
@pytest.mark.parametrize("penalty", [{"C": 0.5}, {"gamma": 0.015}], ids=["sum", "mean"])
def test_every_promise_about_a_logistic_model(
    explainer: Callable[[LogisticModel], Rocerf], penalty: dict[str, float]
) -> None:
    model = LogisticModel.fit(random_training_set(1, n=60), **penalty)
    for letter in letters_of(explainer(model), refused_people(model, 1, 4)):
        assert_german(letter)
        for option in letter.options:
            proven = option.promise.name == "certified"
            assert option.promise.proven == proven
            assert ("wie unter den genannten Annahmen bewiesen ist" in option.promise.sentence) == proven
            assert "bewiesen" not in option.promise.sentence.replace("nicht bewiesen", "") or proven


@pytest.mark.slow
@pytest.mark.parametrize("promise", ["first_order", "local_linear", "authors", "simulated"])
def test_every_promise_about_a_network(promise: str) -> None:
    network = small_network(n=40)
    few = Simulated(validity=0.5, shaping=2, choosing=2, checking=1)
    promises = {"authors": LocalLinear(network, 2, sampling="authors"), "simulated": few}
    explainer = Rocerf(network, 2, promise=promises.get(promise, promise))
    X = network.train.X[network.predict(network.train.X) == 0]
    for letter in letters_of(explainer, X[:6]):
        assert_german(letter)


def test_a_classifier_of_scikit_learn() -> None:
    train = random_training_set(1, n=80)
    own = DecisionTreeClassifier(max_depth=3, class_weight="balanced", random_state=0).fit(train.X, train.y)
    model = EstimatorModel.from_sklearn(own, train)
    refused = train.X[model.predict(train.X) == 0][:4]
    for letter in letters_of(Rocerf(model, 2, promise=FEW, cost="l1"), refused):
        assert_german(letter, "DecisionTreeClassifier")


@pytest.mark.slow
@pytest.mark.parametrize("preprocessing", ["frozen", "refitted"])
@pytest.mark.parametrize("retraining", ["own", "exact"])
def test_a_pipeline(preprocessing: str, retraining: str, tmp_path: Path) -> None:
    frame, y = loans(150)
    pipeline = fitted(PIPELINES["loose"], frame, y)
    model = from_pipeline(pipeline, frame, y, preprocessing=preprocessing, retraining=retraining)
    people = loans(40, seed=1)[0]
    explainer = Rocerf(model, 2, effort="quick")
    answers = explainer.explain(people[pipeline.predict(people) == 0][:4])
    for letter in explainer.letters(answers, valid_until=UNTIL, issued=ISSUED, language="de"):
        assert_german(letter)
    explainer.save(tmp_path / "kept")
    if preprocessing == "frozen":  # without the pipeline, some of it is not at hand
        for letter in Rocerf.load(tmp_path / "kept").letters(answers, valid_until=UNTIL, language="de"):
            assert_german(letter)


@pytest.mark.slow
def test_a_model_in_single_precision() -> None:
    frame, y = loans(150)
    narrow = {name: "float32" for name in frame.columns if name != "home"}
    frame, people = frame.astype(narrow), loans(40, seed=1)[0].astype(narrow)
    pipeline = fitted(PIPELINES["loose"], frame, y)
    model = from_pipeline(pipeline, frame, y)
    assert model.arithmetic.narrow
    for letter in letters_of(Rocerf(model, 2, effort="quick"), people[pipeline.predict(people) == 0][:3]):
        assert_german(letter)


# --- numbers --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def german() -> tuple[Rocerf, tuple[Recourses, ...], tuple[Letter, ...]]:
    model, people = raw_model()
    explainer = Rocerf(model, 2, cost="mad")
    batches = explainer.alternatives(people[:20], 2)
    options = {"valid_until": UNTIL, "issued": ISSUED, "model_version": "v7", "language": "de"}
    return explainer, batches, explainer.letters(batches, **options)


@pytest.mark.slow
def test_numbers_are_german_and_parse_back(german: Any) -> None:
    explainer, _, letters = german
    money = [c for letter in letters for o in letter.options for c in o.changes if c.unit == "EUR"]
    assert any(re.fullmatch(r"\d\d\.\d{3} EUR", change.after_text) for change in money)
    for change in money:
        assert GERMAN.parsed(change.after_text.removesuffix(" EUR")) == change.after
        if change.before is not None:
            shown = GERMAN.parsed(change.before_text.removesuffix(" EUR"))
            assert abs(shown - change.before) <= 0.01 * abs(change.after - change.before)
    assert any(re.fullmatch(r"[\d.]+,\d+ EUR", change.before_text) for change in money)
    for letter in letters:
        assert as_read_by_people(letter, explainer.schema) == as_read_by_programs(letter)
        assert "Datum: 15. November 2026" in letter.to_text()
        assert_german(letter)


@pytest.mark.slow
def test_german_and_english_letters_are_about_the_same(german: Any) -> None:
    explainer, batches, letters = german
    english = explainer.letters(batches, valid_until=UNTIL, issued=ISSUED, model_version="v7")
    for one, other in zip(letters, english, strict=True):
        assert as_read_by_programs(one) == as_read_by_programs(other)
        assert (one.status, one.held == other.held) == (other.status, True)
        assert Letter.from_json(one.to_json()) == one


# --- from files -----------------------------------------------------------------------------------


def test_a_saved_result_can_be_said_in_german(german: Any) -> None:
    explainer, batches, letters = german
    read = [Recourses.from_json(batch.to_json()) for batch in batches]
    again = explainer.letters(read, valid_until=UNTIL, issued=ISSUED, model_version="v7", language="de")
    assert again == letters
    kept = read[0].settings
    for said in (kept.sentence, *kept.assumptions, *read[0].reasons):
        own = str(explainer.model.own_refit.own)
        assert not words_in(said.in_language("de").replace(own, "")) & ENGLISH_ONLY


def test_results_of_earlier_versions_have_their_texts_alone(german: Any) -> None:
    explainer, batches, letters = german
    document = json.loads(batches[0].to_json())
    del document["said"]
    old = Recourses.from_json(json.dumps(sealed(document)))
    assert (old.settings, old.reasons) == (batches[0].settings, batches[0].reasons)
    assert not hasattr(old.settings.sentence, "key")
    # Letters say what the explainer says, so that theirs can be German all the same.
    assert explainer.letters(
        [old, batches[1]], valid_until=UNTIL, issued=ISSUED, model_version="v7", language="de"
    ) == (letters)


# --- a language from outside ----------------------------------------------------------------------


@pytest.fixture
def mirrored(tmp_path: Path) -> Iterator[Language]:
    """A third language, out of a file: English with every word read backwards, and signs of its own."""

    def backwards(sentence: Any) -> Any:
        if isinstance(sentence, dict):
            return {form: text if form == "of" else backwards(text) for form, text in sentence.items()}
        return re.sub(r"\{.*?\}|\w+", lambda found: found[0] if found[0][0] == "{" else found[0][::-1], sentence)

    english = language_named("en")
    tree: dict[str, Any] = {}
    for key, sentence in english.sentences.items():
        *above, name = key.split(".")
        place = tree
        for part in above:
            place = place.setdefault(part, {})
        place[name] = backwards(sentence)
    document = {
        "decimal_point": "·",
        "thousands": "'",
        "percent": " pct",
        "day_format": "{year}/{month}/{day}",
        "months": [month[::-1] for month in english.months],
        "sentences": tree,
    }
    (tmp_path / "xx.yaml").write_text(json.dumps(document), "utf-8")  # JSON is YAML
    language = Language.read(tmp_path / "xx.yaml")
    register_language(language)
    yield language
    del registry._REGISTERED["xx"]


def test_a_language_from_outside_writes_letters(mirrored: Language, german: Any) -> None:
    explainer, batches, _ = german
    letters = explainer.letters(batches, valid_until=UNTIL, issued=ISSUED, language="xx")
    english = explainer.letters(batches, valid_until=UNTIL, issued=ISSUED)
    for letter, known in zip(letters, english, strict=True):
        assert "ecnerefeR: " in letter.to_text()
        assert "etaD: 2026/rebmevoN/15" in letter.to_text()
        assert '<html lang="xx">' in letter.to_html()
        assert Letter.from_json(letter.to_json()) == letter
        assert as_read_by_people(letter, explainer.schema) == as_read_by_programs(known)
    money = [c for letter in letters for o in letter.options for c in o.changes if c.feature == "income"]
    assert any(re.fullmatch(r"\d\d'\d{3} EUR", change.after_text) for change in money)
    (option, *_) = next(letter.options for letter in letters if letter.options)
    assert option.promise.sentence.startswith("devivrus eht tsegnorts noiteled")


def test_a_language_that_is_not_registered_is_handed_over(mirrored: Language, german: Any) -> None:
    explainer, batches, _ = german
    own = replace(mirrored, code="yy")
    (letter, *_) = explainer.letters(batches[0], valid_until=None, language=own)
    with pytest.raises(FileFormatError, match="'yy'"):
        Letter.from_json(letter.to_json())
    assert Letter.from_json(letter.to_json(), language=own) == letter
