"""Is the agent's work in the base branch already? Told by content, for each way in which work lands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

BRANCH = "swarm/developer-feature-x"
HISTORIES: dict[str, tuple[str, Callable[[Lab, Path], object]]] = {}


def history(landed: str) -> Callable[[Callable[[Lab, Path], object]], Callable[[Lab, Path], object]]:
    """Register a history, with what is to be told of it."""

    def register(make: Callable[[Lab, Path], object]) -> Callable[[Lab, Path], object]:
        HISTORIES[make.__name__] = (landed, make)
        return make

    return register


def work(lab: Lab, tree: Path) -> None:
    """Two commits of the agent's."""
    lab.write({"README": "hello\nfrom the agent\n"}, tree)
    lab.commit("readme", cwd=tree)
    lab.write({"part.txt": "part\n"}, tree)
    lab.commit("part", cwd=tree)


def main_moves_on(lab: Lab) -> None:
    lab.write({"other.txt": "other\n"})
    lab.commit("something else")


@history("fresh")
def nothing_done(lab: Lab, tree: Path) -> None:
    pass


@history("fresh")
def nothing_done_and_main_moved_on(lab: Lab, tree: Path) -> None:
    main_moves_on(lab)


@history("fresh")
def reset_to_the_base(lab: Lab, tree: Path) -> None:
    work(lab, tree)
    lab.git("reset", "--quiet", "--hard", "HEAD~2", cwd=tree)
    main_moves_on(lab)


@history("merged")
def moved_along_with_main(lab: Lab, tree: Path) -> None:
    main_moves_on(lab)
    lab.git("merge", "--quiet", "main", cwd=tree)


@history("fresh")
def only_empty_commits(lab: Lab, tree: Path) -> None:
    lab.commit("nothing in it", cwd=tree)
    lab.commit("nor in this one", cwd=tree)
    main_moves_on(lab)


@history("fresh")
def taken_back_by_the_agent(lab: Lab, tree: Path) -> None:
    work(lab, tree)
    lab.git("revert", "--no-edit", "HEAD~2..HEAD", cwd=tree)


@history("")
def not_landed(lab: Lab, tree: Path) -> None:
    work(lab, tree)
    main_moves_on(lab)


@history("merged")
def fast_forward(lab: Lab, tree: Path) -> None:
    work(lab, tree)
    lab.git("merge", "--quiet", "--ff-only", BRANCH)


@history("merged")
def merge_commit(lab: Lab, tree: Path) -> None:
    work(lab, tree)
    main_moves_on(lab)
    lab.git("merge", "--quiet", "--no-ff", "--no-edit", BRANCH)
    main_moves_on(lab)


@history("merged")
def merged_and_taken_back(lab: Lab, tree: Path) -> None:
    merge_commit(lab, tree)
    lab.git("revert", "--no-edit", "-m", "1", "HEAD~1")


@history("")
def merged_and_worked_on(lab: Lab, tree: Path) -> None:
    merge_commit(lab, tree)
    lab.write({"more.txt": "more\n"}, tree)
    lab.commit("more", cwd=tree)


@history("squashed")
def squash(lab: Lab, tree: Path) -> None:
    work(lab, tree)
    main_moves_on(lab)
    lab.git("merge", "--quiet", "--squash", BRANCH)
    lab.git("commit", "--quiet", "-m", "squashed")


@history("squashed")
def squash_and_main_changed_the_same_lines(lab: Lab, tree: Path) -> None:
    squash(lab, tree)
    lab.write({"README": "hello\nnow quite different\n"})
    lab.commit("the same lines")


@history("squashed")
def squash_of_a_renamed_file_and_main_changed_the_same_lines(lab: Lab, tree: Path) -> None:
    lab.git("mv", "src/app.py", "src/main.py", cwd=tree)
    lab.git("mv", "README", "READ ME", cwd=tree)
    work(lab, tree)
    lab.git("merge", "--quiet", "--squash", BRANCH)
    lab.git("commit", "--quiet", "-m", "squashed")
    lab.write({"README": "hello\nnow quite different\n", "src/main.py": "print('another')\n"})
    lab.commit("the same lines")


@history("squashed")
def squash_after_main_was_merged_in(lab: Lab, tree: Path) -> None:
    work(lab, tree)
    main_moves_on(lab)
    lab.git("merge", "--quiet", "--no-edit", "main", cwd=tree)
    lab.git("merge", "--quiet", "--squash", BRANCH)
    lab.git("commit", "--quiet", "-m", "squashed")
    main_moves_on(lab)


@history("rebased")
def picked_one_by_one(lab: Lab, tree: Path) -> None:
    work(lab, tree)
    main_moves_on(lab)
    lab.git("cherry-pick", f"{BRANCH}~2..{BRANCH}")


@history("")
def picked_in_part(lab: Lab, tree: Path) -> None:
    work(lab, tree)
    main_moves_on(lab)
    lab.git("cherry-pick", BRANCH)


@history("rebased")
def the_same_change_made_by_someone_else(lab: Lab, tree: Path) -> None:
    lab.write({"part.txt": "part\n"}, tree)
    lab.commit("the agent's words", cwd=tree)
    lab.write({"part.txt": "part\n"})
    lab.commit("my words")


@history("")
def merged_into_another_branch(lab: Lab, tree: Path) -> None:
    work(lab, tree)
    lab.git("switch", "--quiet", "-c", "develop")
    lab.git("merge", "--quiet", "--no-ff", "--no-edit", BRANCH)
    lab.git("switch", "--quiet", "main")


@history("")
def merged_into_the_branch_that_happens_to_be_checked_out(lab: Lab, tree: Path) -> None:
    work(lab, tree)
    lab.git("switch", "--quiet", "-c", "develop")
    lab.git("merge", "--quiet", "--no-ff", "--no-edit", BRANCH)


@history("merged")
def base_branch_renamed(lab: Lab, tree: Path) -> None:
    merge_commit(lab, tree)
    lab.git("branch", "-m", "main", "trunk")  # then what is checked out counts


@history("")
def unrelated_history(lab: Lab, tree: Path) -> None:
    work(lab, tree)
    lab.git("checkout", "--quiet", "--orphan", "new-start")
    lab.commit("all new")
    lab.git("branch", "-M", "main")


@pytest.mark.parametrize("name", HISTORIES)
def test_what_became_of_the_commits_is_told(lab: Lab, name: str) -> None:
    landed, make = HISTORIES[name]
    swarm: Any = lab.open(worktrees__durable=False)
    swarm.create("feature-x", ["developer"])
    tree = lab.tree("developer")
    make(lab, tree)
    assert swarm.worktrees.show("developer").landed == landed
    known = set(lab.git("rev-list", "--all", "--reflog").split())
    (removed,) = swarm.cleanup(["feature-x"]).removed
    assert removed.landed == landed
    assert known <= set(lab.git("rev-list", "--all", "--reflog").split())  # saved, whatever was told


@pytest.mark.parametrize(
    "setting",
    [
        *("diff.renames=copies", "diff.noprefix=true", "diff.mnemonicPrefix=true", "color.ui=always", "diff.context=0"),
        *("diff.external=false", "diff.upper.textconv=tr a-z A-Z <", "diff.wordRegex=.", "diff.algorithm=patience"),
    ],
)
def test_what_the_user_likes_to_see_of_changes_makes_no_difference(lab: Lab, setting: str) -> None:
    key, _, value = setting.partition("=")
    lab.write({".gitattributes": "* diff=upper\n"})
    lab.commit("attributes")
    lab.git("config", key, value)
    swarm: Any = lab.open(worktrees__durable=False)
    swarm.create("feature-x", ["developer"])
    squash_and_main_changed_the_same_lines(lab, lab.tree("developer"))

    assert swarm.worktrees.show("developer").landed == "squashed"
