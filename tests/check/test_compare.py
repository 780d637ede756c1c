"""Events of a training before and after: sound migrations pass, planted faults are seen where they lie."""

from __future__ import annotations

from functools import lru_cache

import pytest
from check.brought.asked_by_call import ASKED_BY_CALL
from check.brought.backwards import BACKWARDS
from check.brought.conditions import CONDITIONS
from check.brought.contexts import CONTEXTS
from check.brought.foreign import FOREIGN
from check.brought.in_blocks import IN_BLOCKS
from check.brought.looked_up import BOUND_TO_A_SCALER, LOOKED_UP
from check.brought.on_claimed_lines import ON_CLAIMED_LINES
from check.brought.settled import SETTLED
from check.brought.states import STATES
from check.brought.unasked import UNASKED
from check.brought.weights import WEIGHTS
from check.casts.behind import BEHIND
from check.casts.disabled import DISABLED
from check.casts.forwards import EVALUATIONS
from check.casts.guarded_calls import GUARDED_CALLS
from check.casts.holders import HOLDERS
from check.casts.inside import INSIDE
from check.casts.mapped import MAPPED
from check.casts.present import PRESENT
from check.casts.roundabout import ROUNDABOUT
from check.casts.switched import SWITCHED
from check.casts.teachers import TEACHERS
from check.casts.validating import VALIDATING
from check.decisions.adversaries import ADVERSARIES
from check.decisions.agents import AGENTS
from check.decisions.clipped_scaled import CLIPPED_SCALED
from check.decisions.distilling import DISTILLING
from check.decisions.finetuning import FINETUNING
from check.decisions.held_back import HELD_BACK, HELD_BACK_UNTOLD
from check.decisions.opened import OPENED
from check.decisions.rearranged import REARRANGED
from check.decisions.roundabout_runs import ROUNDABOUT_RUNS
from check.decisions.set_behind import SET_BEHIND
from check.decisions.set_up_again import SET_UP_AGAIN
from check.decisions.staying import STAYING
from check.elsewhere.astray import ASTRAY
from check.elsewhere.in_closures import IN_CLOSURES
from check.elsewhere.later import LATER
from check.elsewhere.left_scaled import LEFT_SCALED, LEFT_UNTOLD
from check.elsewhere.made_anew import MADE_ANEW
from check.elsewhere.moved import GIVEN_AWAY, MOVED
from check.elsewhere.nested import NESTED
from check.elsewhere.passed import PASSED, PASSED_UNTOLD
from check.elsewhere.placeholders import PLACEHOLDERS
from check.elsewhere.shared_weights import SHARED_WEIGHTS
from check.elsewhere.turned_off import TURNED_OFF
from check.elsewhere.whole_results import WHOLE_RESULTS
from check.flags.anew import ANEW
from check.flags.asked_early import ASKED_EARLY
from check.flags.backends import BACKENDS, BACKENDS_MIXED
from check.flags.done import DONE
from check.flags.given_on import GIVEN_ON, OF_A_SUBCOMMAND
from check.flags.inputs_later import INPUTS_LATER
from check.flags.kept import KEPT_BY, KEPT_NO_MORE
from check.flags.kept_contexts import KEPT_CONTEXTS
from check.flags.plain import KEPT, PLAIN, PLAIN_UNTOLD
from check.flags.set_later import SET_LATER
from check.flags.static_arms import STATIC_ARMS
from check.flags.unpacked import ASKED_AT_RUN_TIME, UNPACKED, UNPACKED_OTHERWISE
from check.levels.handed_to_objects import HANDED_TO_OBJECTS
from check.levels.not_given import NOT_GIVEN
from check.levels.taken_apart import TAKEN_APART
from check.levels.unlisted_products import UNLISTED_PRODUCTS
from check.native.cast_twice import CAST_TWICE
from check.native.casts_in_rounds import CASTS_IN_ROUNDS
from check.native.chains import CHAINS, CHAINS_THAT_OVERLAP
from check.native.changed_by_operators import CHANGED_BY_OPERATORS
from check.native.flags_elsewhere import FLAGS_ELSEWHERE
from check.native.kinds_of_scales import KINDS_OF_SCALES
from check.native.made_wide import MADE_WIDE
from check.native.of_fixtures import OF_FIXTURES
from check.native.own_blocks import LEFT_IN_FP32, OTHER_CONTEXTS, OVER_A_CALL, OWN_BLOCKS
from check.native.tests_of_the_new_text import TESTS_OF_THE_NEW_TEXT
from check.native.unscaled_in_properties import UNSCALED_IN_PROPERTIES
from check.objects.among_names import AMONG_NAMES
from check.objects.drawn_weights import DRAWN_WEIGHTS
from check.objects.forward_helpers import FORWARD_HELPERS
from check.objects.items_of_lists import ITEMS_OF_LISTS
from check.objects.kept_entries import KEPT_ENTRIES
from check.objects.loops_of_layers import LOOPS_OF_LAYERS
from check.objects.methods_of_parts import METHODS_OF_PARTS
from check.objects.never_on import NEVER_ON
from check.objects.new_objects import NEW_OBJECTS
from check.objects.other_objects import OTHER_OBJECTS, OTHER_OBJECTS_BEHIND
from check.objects.registered import REGISTERED
from check.objects.told_of_trainers import TOLD_OF_TRAINERS
from check.outputs.cleared_behind import CLEARED_BEHIND
from check.outputs.gradients_taken import GRADIENTS_TAKEN
from check.outputs.measured import MEASURED
from check.outputs.networks_by_name import NETWORKS_BY_NAME
from check.outputs.not_there_yet import NOT_THERE_YET
from check.outputs.products import PRODUCTS
from check.outputs.put_in_place import PUT_IN_PLACE
from check.outputs.run_by_criteria import RUN_BY_CRITERIA
from check.outputs.scales_in_dicts import CHANGED_DICTS, SCALES_IN_DICTS
from check.outputs.scoring import SCORING
from check.outputs.unlisted import UNLISTED
from check.outputs.written_in_place import WRITTEN_IN_PLACE
from check.quiet.answers import ANSWERS
from check.quiet.brought_optimizers import BROUGHT_OPTIMIZERS
from check.quiet.halved_flags import HALVED_FLAGS
from check.quiet.hooks import HOOKS
from check.quiet.in_turn import IN_TURN
from check.quiet.joined_flags import JOINED_FLAGS
from check.quiet.left_wide import LEFT_WIDE
from check.quiet.loaded_scale import LOADED_SCALE
from check.quiet.objects_that_stop import OBJECTS_THAT_STOP
from check.quiet.other_networks import OTHER_NETWORKS
from check.quiet.recorded import RECORDED
from check.quiet.turned_flags import TURNED_FLAGS
from check.repeated.bases_and_mixins import BASES_AND_MIXINS
from check.repeated.counted_up_to import COUNTED_UP_TO
from check.repeated.emptied_branches import EMPTIED_BRANCHES
from check.repeated.held_methods import HELD_METHODS, TAKEN_EARLY
from check.repeated.hooks_run_again import HOOKS_RUN_AGAIN
from check.repeated.kept_or_gone import KEPT_OR_GONE
from check.repeated.one_of_several import ONE_OF_SEVERAL
from check.repeated.run_in_place import RUN_IN_PLACE
from check.repeated.stuck_scales import STUCK_SCALES
from check.repeated.stuck_ways import STUCK_WAYS
from check.repeated.taken_along import TAKEN_ALONG
from check.repeated.told_by_settings import TOLD_BY_SETTINGS
from check.trainings.accepted import ACCEPTED
from check.trainings.across_files import ACROSS_FILES
from check.trainings.claimed import CLAIMED
from check.trainings.early import EARLY
from check.trainings.helpers import HELPERS
from check.trainings.planted import TRAININGS, Training, spoilt
from check.trainings.programs import PROGRAMS
from check.trainings.rounds import ROUNDS
from check.trainings.same_names import SAME_NAMES
from check.trainings.speeds import SPEEDS, SPEEDS_WRONG, UNTOLD
from check.trainings.spoilt import SPOILT
from check.trainings.stepped import STEPPED, UNCLAIMED

from amp_migrate.check.events.claims import Claim, Claims
from amp_migrate.check.judging.judge import Judge
from amp_migrate.check.judging.objections import Objection
from amp_migrate.facts.tree import Tree
from amp_migrate.processes import without_collector
from amp_migrate.project import build

EVERY = (
    *TRAININGS, *ACCEPTED, *EVALUATIONS, *PROGRAMS, *CLAIMED, *HELPERS, *PRESENT, *ROUNDABOUT, *ACROSS_FILES,
    *SWITCHED, *DISABLED, *HOLDERS, *ROUNDS, *TEACHERS, *SPOILT, *VALIDATING, *GUARDED_CALLS, *SAME_NAMES,
    *NEW_OBJECTS, *BEHIND, *INSIDE, *MEASURED, *STEPPED, *EARLY, *SPEEDS, *ANEW, *SET_UP_AGAIN, *TURNED_OFF, *MOVED, *GIVEN_AWAY, *PLAIN, *PRODUCTS,
    *UNLISTED, *GRADIENTS_TAKEN, *PUT_IN_PLACE, *SCORING, *KEPT_OR_GONE,
    *DONE, *PLACEHOLDERS,
    *SHARED_WEIGHTS, *MADE_ANEW, *WHOLE_RESULTS, KEPT, *KEPT_BY, *UNPACKED, *IN_CLOSURES, *ADVERSARIES, *AGENTS,
    *DISTILLING, *FINETUNING, *REARRANGED, *STAYING, *LATER, *OPENED,
    *ASTRAY, *SET_LATER, *INPUTS_LATER, *PASSED, GIVEN_ON, OF_A_SUBCOMMAND, *ASKED_EARLY, *BACKENDS, *NESTED, *LEFT_SCALED, *HELD_BACK,
    *ROUNDABOUT_RUNS, *KEPT_CONTEXTS, *BACKWARDS, *CONDITIONS, *CONTEXTS, *FOREIGN, *IN_BLOCKS, *ON_CLAIMED_LINES, *STATES,
    *UNASKED, *WEIGHTS, *STATIC_ARMS, ASKED_BY_CALL, *SET_BEHIND, *CLIPPED_SCALED, *SETTLED,
    *IN_TURN, *LOADED_SCALE, *OTHER_NETWORKS, *TURNED_FLAGS, *OBJECTS_THAT_STOP, *ANSWERS, *RECORDED, *HALVED_FLAGS, *HOOKS,
    *NOT_THERE_YET, *LOOKED_UP, *ASKED_AT_RUN_TIME, *BROUGHT_OPTIMIZERS, *LEFT_WIDE, *MAPPED, *CLEARED_BEHIND, *SCALES_IN_DICTS,
    *JOINED_FLAGS, *NETWORKS_BY_NAME, *TAKEN_ALONG, *HOOKS_RUN_AGAIN, *STUCK_SCALES, *STUCK_WAYS, *ONE_OF_SEVERAL, *HELD_METHODS, *RUN_IN_PLACE, *TOLD_BY_SETTINGS, *BASES_AND_MIXINS,
    *COUNTED_UP_TO, *EMPTIED_BRANCHES, *WRITTEN_IN_PLACE, *RUN_BY_CRITERIA, *OWN_BLOCKS, OVER_A_CALL, OTHER_CONTEXTS, *CHAINS, *UNSCALED_IN_PROPERTIES,
    *FORWARD_HELPERS, *LOOPS_OF_LAYERS,
    *METHODS_OF_PARTS, *CASTS_IN_ROUNDS, *OF_FIXTURES, *CHANGED_BY_OPERATORS, *FLAGS_ELSEWHERE, *KINDS_OF_SCALES, *TESTS_OF_THE_NEW_TEXT,
    *CAST_TWICE, *DRAWN_WEIGHTS, *ITEMS_OF_LISTS, *REGISTERED, *NEVER_ON, *OTHER_OBJECTS, *KEPT_ENTRIES, *TOLD_OF_TRAINERS, *AMONG_NAMES, *MADE_WIDE,
    *HANDED_TO_OBJECTS, *NOT_GIVEN, *TAKEN_APART, *UNLISTED_PRODUCTS,
)  # fmt: skip


@lru_cache(maxsize=2)
def _judge(texts: tuple[tuple[str, str], ...]) -> Judge:
    """Return the judge of some old texts, which a run asks about one attempt after another as well."""
    before = {path: Tree(path, text) for path, text in texts}
    return Judge(before, build(before))


def objections(training: Training, after: dict[str, str]) -> list[Objection]:
    """Return what the check has to say against a text after a training."""
    claims = Claims(tuple(Claim(*claim) for claim in training.claims))
    changed = {path: text for path, text in after.items() if text != training.before[path]}
    with without_collector():
        return _judge(tuple(training.before.items())).judged(changed, claims).objections


@pytest.mark.parametrize("training", EVERY, ids=lambda t: t.name)
def test_a_sound_migration_passes(training: Training) -> None:
    """What does the same is not objected to."""
    assert objections(training, training.after) == []


@pytest.mark.parametrize(
    "training",
    (
        *UNCLAIMED,
        *SPEEDS_WRONG,
        *UNTOLD,
        *PLAIN_UNTOLD,
        *PASSED_UNTOLD,
        *LEFT_UNTOLD,
        *HELD_BACK_UNTOLD,
        *KEPT_NO_MORE,
        *UNPACKED_OTHERWISE,
        *BACKENDS_MIXED,
        *BOUND_TO_A_SCALER,
        *CHANGED_DICTS,
        *TAKEN_EARLY,
        *LEFT_IN_FP32,
        *CHAINS_THAT_OVERLAP,
        *OTHER_OBJECTS_BEHIND,
    ),
    ids=lambda t: t.name,
)
def test_what_no_rule_claims_is_refused(training: Training) -> None:
    """What is no longer as it was under Apex stands only where a rule of the run says so."""
    assert objections(training, training.after)


@pytest.mark.parametrize(
    ("training", "fault"),
    [
        pytest.param(training, fault, id=f"{training.name}: {fault}")
        for training in EVERY
        for fault in training.faults
    ],
)
def test_a_planted_fault_is_seen(training: Training, fault: str) -> None:
    """The objection names a line of the old text."""
    found = objections(training, spoilt(training, fault))
    assert found
    lines = {path: text.count("\n") for path, text in training.before.items()}
    assert all(0 <= item.place.line <= lines[item.place.path] for item in found)
