"""Reading extensions: the contexts that multiply the rules, and their claims."""

from __future__ import annotations

from collections.abc import Mapping

from modicum.core.document import Kind, Node, Scalar
from modicum.core.errors import Code, Mark
from modicum.core.reader import (
    Fields,
    Problems,
    choice,
    fail,
    name,
    optional_items,
    place,
)
from modicum.policy.budget_maps import parse_map
from modicum.policy.cel.compiler import parse_predicate
from modicum.policy.declarations.base_policies import Budgets
from modicum.policy.model import Extension, Setting
from modicum.policy.predicates import Constant, Predicate, looks_only_at_labels
from modicum.release import Vocabulary


def read_extensions(
    node: Node | None, vocabulary: Vocabulary, budgets: Budgets
) -> tuple[Extension, ...]:
    """Return the extensions of a list, in order.

    Args:
        node: The list; None if there is none.
        vocabulary: The names that they may refer to.
        budgets: Reads budgets.

    Raises:
        InputError: With every mistake found.
    """
    found = Problems()
    extensions: list[Extension] = []
    for item in optional_items(node, "`extensions`"):
        with found.guard():
            extensions.append(_extension(item, vocabulary, budgets))
    found.raise_any()
    _refuse_same_names(extensions)
    return tuple(extensions)


def _extension(node: Node, vocabulary: Vocabulary, budgets: Budgets) -> Extension:
    fields = Fields(node, "an extension")
    own_name = name(fields.take("name"), "the extension's name")
    settings_node = fields.take("settings")
    fields.finish()
    found = Problems()
    settings: list[Setting] = []
    claims: list[tuple[Setting, Node]] = []
    for key, value in Fields(settings_node, f"extension `{own_name}`").rest():
        with found.guard():
            setting, within = _setting(key, value, vocabulary, budgets)
            settings.append(setting)
            if within is not None:
                claims.append((setting, within))
    found.raise_any()
    _refuse_no_catch_all(own_name, settings, vocabulary, settings_node)
    for setting, within in claims:
        _check_within(setting, within, settings, vocabulary)
    return Extension(own_name, tuple(settings), node.mark)


def _setting(
    key: Scalar, node: Node, vocabulary: Vocabulary, budgets: Budgets
) -> tuple[Setting, Node | None]:
    own_name = name(key, "a setting's name")
    fields = Fields(node, f"setting `{own_name}`")
    remedy = 'add  when: "true"  for a setting that matches everything'
    when = fields.take("when", help=remedy)
    predicate = parse_predicate(when, "`when`", vocabulary)
    if not looks_only_at_labels(predicate):
        raise fail(
            Code.CEL_SUBSET,
            "a setting may use labels only",
            when,
            notes=("so that the coverage of settings is decidable",),
        )
    map_node = fields.take("budget", help="add  budget: same  to change nothing")
    budget_map = parse_map(map_node, budgets.read)
    within = fields.take_optional("within")
    fields.finish()
    return Setting(own_name, predicate, budget_map, key.mark), within


# --- claims -----------------------------------------------------------------------


def _refuse_no_catch_all(
    own_name: str, settings: list[Setting], vocabulary: Vocabulary, node: Node
) -> None:
    escapes: dict[str, Mapping[str, str]] = {}
    for setting in settings:
        escape = _counterexample(Constant(value=True), setting, vocabulary, node)
        if escape is None:
            return
        escapes[setting.name] = escape
    raise fail(
        Code.NO_CATCH_ALL,
        f'extension "{own_name}" has no setting that matches every mechanism',
        node,
        notes=tuple(
            f"`{setting}` misses a mechanism with {_labels_text(escape)}"
            for setting, escape in escapes.items()
        ),
        help='write  when: "true"  for the loosest setting',
    )


def _check_within(
    setting: Setting, node: Node, settings: list[Setting], vocabulary: Vocabulary
) -> None:
    names = [other.name for other in settings]
    wide_name = choice(node, "setting", names, Code.UNKNOWN_CHOICE)
    wide = settings[names.index(wide_name)]
    escape = _counterexample(setting.predicate, wide, vocabulary, node)
    if escape is not None:
        raise fail(
            Code.FALSE_WITHIN,
            f'"{setting.name}" is not within "{wide.name}"',
            node,
            notes=(
                f"counterexample: a mechanism with {_labels_text(escape)} matches"
                f' "{setting.name}" but not "{wide.name}" ({place(wide.mark)})',
            ),
        )


def _counterexample(
    narrow: Predicate, wide: Setting, vocabulary: Vocabulary, node: Node
) -> Mapping[str, str] | None:
    try:
        from modicum.policy.implication.search import counterexample

        return counterexample(narrow, wide.predicate, vocabulary)
    except ValueError as error:
        raise fail(Code.CEL_LIMIT, str(error), node) from error


def _labels_text(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in labels.items()) or "any label"


def _refuse_same_names(extensions: list[Extension]) -> None:
    names: dict[str, Mark | None] = {}
    settings: dict[str, Mark | None] = {}
    reason = "rules are named after their settings"
    for extension in extensions:
        _refuse_second("extensions", extension.name, extension.mark, names)
        for setting in extension.settings:
            _refuse_second("settings", setting.name, setting.mark, settings, reason)


def _refuse_second(
    what: str, own_name: str, mark: Mark | None, seen: dict[str, Mark | None], *why: str
) -> None:
    if own_name in seen:
        node = Scalar(Kind.TEXT, own_name, quoted=False, mark=mark)
        message = f"two {what} are named `{own_name}`"
        raise fail(Code.DUPLICATE_NAME, message, node, notes=why)
    seen[own_name] = mark
