"""Odd repositories: each has a whole life (made, checked, removed with work in it, brought back) or one clear no."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm import Swarm
from swarm.testing.lab import Lab, file_digests
from tests.support import odd
from tests.support.odd import AGENTS, NOTES, SESSION, refused, whole_life

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.integration

Builder = "Callable[[Lab], dict[str, Any]]"
WORKS: list[Any] = []

FILES: dict[str, str | bytes] = {"README": "hello\n", "src/app.py": "print('app')\n", "lib/deep/x.txt": "x\n"}


def works(build: Callable[[Lab], dict[str, Any]]) -> Callable[[Lab], dict[str, Any]]:
    """Register a repository in which everything simply works; *build* returns how to ask."""
    WORKS.append(pytest.param(build, id=build.__name__.replace("_", "-")))
    return build


@pytest.mark.parametrize("build", WORKS)
def test_a_set_has_a_whole_life_in(lab: Lab, build: Callable[[Lab], dict[str, Any]]) -> None:
    whole_life(lab, **build(lab))


def fresh(lab: Lab, name: str, *options: str) -> Path:
    """Make another repository beside the lab's."""
    root = lab.root.parent / name
    lab.git("init", "--quiet", *options, str(root), cwd=lab.root.parent)
    lab.write(FILES, root)
    lab.commit("first", root)
    return root


def clone(lab: Lab, name: str, *options: str) -> Path:
    """Clone the lab's repository as over a network."""
    root = lab.root.parent / name
    lab.git("clone", "--quiet", *options, f"file://{lab.root}", str(root), cwd=lab.root.parent)
    return root


def config(lab: Lab, **values: str) -> None:
    """Set the repository's configuration; ``__`` stands for the dot."""
    for key, value in values.items():
        lab.git("config", key.replace("__", "."), value)


# --- where HEAD is --------------------------------------------------------------------------------


@works
def an_ordinary_one(lab: Lab) -> dict[str, Any]:
    return {}


@works
def a_head_without_commit_and_another_base(lab: Lab) -> dict[str, Any]:
    lab.git("checkout", "--quiet", "--orphan", "empty")
    lab.git("rm", "-rfq", ".")
    return {"base": "main"}


@works
def a_detached_head(lab: Lab) -> dict[str, Any]:
    lab.git("checkout", "--quiet", "--detach")
    return {}


@works
def a_head_that_is_a_symbolic_link(lab: Lab) -> dict[str, Any]:
    (lab.root / ".git" / "HEAD").unlink()
    (lab.root / ".git" / "HEAD").symlink_to("refs/heads/main")
    return {}


@works
def a_tag_as_base(lab: Lab) -> dict[str, Any]:
    lab.git("tag", "-a", "v1", "-m", "one")
    lab.commit("second")
    return {"base": "v1"}


@works
def a_merge_in_progress(lab: Lab) -> dict[str, Any]:
    lab.git("checkout", "--quiet", "-b", "other")
    lab.write({"README": "theirs\n"})
    lab.commit("theirs")
    lab.git("checkout", "--quiet", "main")
    lab.write({"README": "ours\n"})
    lab.commit("ours")
    lab.git("merge", "other", check=False)
    assert (lab.root / ".git" / "MERGE_HEAD").exists()
    return {}


@works
def a_bisect_in_progress(lab: Lab) -> dict[str, Any]:
    first = lab.git("rev-parse", "HEAD")
    lab.commit("second")
    lab.commit("third")
    lab.git("bisect", "start", "HEAD", first)
    return {}


@works
def a_dirty_main_checkout(lab: Lab) -> dict[str, Any]:
    lab.write({"README": "edited\n", "new": "new\n", "app.log": "ignored\n"})
    lab.git("add", "new")
    lab.git("stash", "push", "--quiet", "--staged", check=False)
    lab.write({"staged": "staged\n"})
    lab.git("add", "staged")
    os.mkfifo(lab.root / "pipe")
    (lab.root / "dangling").symlink_to("nowhere")
    return {}


@works
def a_commit_without_any_file(lab: Lab) -> dict[str, Any]:
    root = lab.root.parent / "empty"
    lab.git("init", "--quiet", str(root))
    lab.git("commit", "--quiet", "--allow-empty", "-m", "nothing", cwd=root)
    return {"root": root}


# --- kinds of repositories ------------------------------------------------------------------------


@works
def a_shallow_clone(lab: Lab) -> dict[str, Any]:
    lab.commit("second")
    root = clone(lab, "shallow", "--depth=1")
    assert (root / ".git" / "shallow").exists()
    return {"root": root}


@works
def a_partial_clone(lab: Lab) -> dict[str, Any]:
    config(lab, uploadpack__allowFilter="true", uploadpack__allowAnySHA1InWant="true")
    lab.write({"README": "second\n"})
    lab.commit("second")
    return {"root": clone(lab, "partial", "--filter=blob:none"), "base": "HEAD~1"}


@works
def a_clone_that_shares_objects(lab: Lab) -> dict[str, Any]:
    root = lab.root.parent / "shared"
    lab.git("clone", "--quiet", "--shared", str(lab.root), str(root))
    assert (root / ".git" / "objects" / "info" / "alternates").exists()
    return {"root": root}


@works
def sha256(lab: Lab) -> dict[str, Any]:
    return {"root": fresh(lab, "sha256", "--object-format=sha256")}


@works
def a_reftable(lab: Lab) -> dict[str, Any]:
    done = lab.git("init", "--ref-format=reftable", str(lab.root.parent / "probe"), check=False)
    if not done or not (lab.root.parent / "probe").exists():
        pytest.skip("this git has no reftable")
    return {"root": fresh(lab, "reftable", "--ref-format=reftable")}


@works
def a_separate_git_dir(lab: Lab) -> dict[str, Any]:
    root = fresh(lab, "separate", "--separate-git-dir", str(lab.root.parent / "the git dir"))
    assert (root / ".git").is_file()
    return {"root": root}


@works
def a_subfolder_of_a_separate_git_dir_s_checkout(lab: Lab) -> dict[str, Any]:
    root = fresh(lab, "separate", "--separate-git-dir", str(lab.root.parent / "elsewhere.git"))
    return {"root": root, "where": root / "lib" / "deep"}


@works
def a_git_folder_that_is_a_symbolic_link(lab: Lab) -> dict[str, Any]:
    (lab.root / ".git").rename(lab.root.parent / "moved.git")
    (lab.root / ".git").symlink_to(lab.root.parent / "moved.git")
    return {}


@works
def a_repository_that_is_a_submodule(lab: Lab) -> dict[str, Any]:
    outer = fresh(lab, "outer")
    lab.git("submodule", "--quiet", "add", str(lab.root), "deep/inner", cwd=outer)
    return {"root": outer / "deep" / "inner"}


@works
def submodules_that_are_not_populated(lab: Lab) -> dict[str, Any]:
    part = fresh(lab, "part")
    lab.git("submodule", "--quiet", "add", str(part), "vendor/part")
    lab.commit("a submodule")
    return {}


@works
def submodules_that_recurse(lab: Lab) -> dict[str, Any]:
    part = fresh(lab, "part")
    lab.git("submodule", "--quiet", "add", str(part), "part")
    lab.commit("a submodule")
    config(lab, submodule__recurse="true", status__submoduleSummary="true", diff__submodule="log")
    return {}


@works
def an_embedded_repository_without_gitmodules(lab: Lab) -> dict[str, Any]:
    fresh(lab, "my project/embedded")
    lab.git("-c", "advice.addEmbeddedRepo=false", "add", "embedded")
    lab.commit("a link")
    return {}


@works
def replaced_and_grafted_commits(lab: Lab) -> dict[str, Any]:
    lab.write({"README": "second\n"})
    lab.commit("second")
    lab.git("replace", "--graft", "HEAD")
    return {}


@works
def packed_refs_only(lab: Lab) -> dict[str, Any]:
    lab.git("branch", "swarm-like")
    lab.git("gc", "--quiet", "--prune=now")
    lab.git("pack-refs", "--all", "--prune")
    return {}


@works
def branches_named_by_links(lab: Lab) -> dict[str, Any]:
    lab.git("config", "core.preferSymlinkRefs", "true")
    lab.git("checkout", "--quiet", "-b", "linked")
    assert (lab.root / ".git/HEAD").is_symlink()
    return {}


@works
def foreign_refs_below_refs_swarm(lab: Lab) -> dict[str, Any]:
    lab.git("update-ref", "refs/swarm/mine", "HEAD")
    lab.git("update-ref", "refs/swarm/op-like", "HEAD")
    return {}


@works
def a_tag_named_like_the_branch(lab: Lab) -> dict[str, Any]:
    lab.git("tag", f"swarm/developer-{SESSION}")
    lab.git("tag", "HEAD", "HEAD")
    lab.git("update-ref", f"refs/remotes/swarm/developer-{SESSION}", "HEAD")
    lab.commit("second")
    return {}


@works
def worktrees_of_the_user(lab: Lab) -> dict[str, Any]:
    top = lab.root.parent
    lab.git("worktree", "add", "--quiet", "-b", "one", str(top / "one"))
    lab.git("worktree", "add", "--quiet", "--lock", "-b", "two", str(top / "two\nlines"))
    lab.git("worktree", "add", "--quiet", "--detach", str(lab.root / ".git-like"))
    lab.git("worktree", "add", "--quiet", "-b", "gone", str(top / "gone"))
    subprocess.run(["rm", "-r", str(top / "gone")], check=True)
    return {}


@works
def a_registration_of_the_user_that_is_broken(lab: Lab) -> dict[str, Any]:
    (lab.root / ".git" / "worktrees" / "hollow").mkdir(parents=True)
    (lab.root / ".git" / "worktrees" / "a file").write_text("?\n")
    return {}


# --- where swarm is asked from --------------------------------------------------------------------


@works
def a_subfolder(lab: Lab) -> dict[str, Any]:
    return {"where": lab.root / "src"}


@works
def a_linked_worktree(lab: Lab) -> dict[str, Any]:
    linked = lab.root.parent / "linked tree"
    lab.git("worktree", "add", "--quiet", "-b", "other", str(linked))
    return {"where": linked / "src"}


@works
def a_linked_worktree_of_a_separate_git_dir(lab: Lab) -> dict[str, Any]:
    root = fresh(lab, "separate", "--separate-git-dir", str(lab.root.parent / "elsewhere"))
    lab.git("config", "core.worktree", str(root), cwd=root)
    linked = lab.root.parent / "linked"
    lab.git("worktree", "add", "--quiet", "-b", "other", str(linked), cwd=root)
    return {"root": root, "where": linked}


@works
def a_linked_worktree_of_a_submodule(lab: Lab) -> dict[str, Any]:
    outer = fresh(lab, "outer")
    lab.git("submodule", "--quiet", "add", str(lab.root), "inner", cwd=outer)
    linked = lab.root.parent / "linked"
    lab.git("worktree", "add", "--quiet", "-b", "other", str(linked), cwd=outer / "inner")
    return {"root": outer / "inner", "where": linked}


@works
def a_symbolic_link_to_the_folder(lab: Lab) -> dict[str, Any]:
    (lab.root.parent / "link").symlink_to(lab.root)
    return {"where": lab.root.parent / "link" / "src"}


# --- what is in the trees -------------------------------------------------------------------------


@works
def a_sparse_checkout_in_cone_mode(lab: Lab) -> dict[str, Any]:
    lab.write({"a/1": "1\n", "b/2": "2\n"})
    lab.commit("folders")
    lab.git("sparse-checkout", "set", "--cone", "a")
    assert not (lab.root / "b").exists()
    return {"sparse": True}


@works
def a_sparse_index(lab: Lab) -> dict[str, Any]:
    lab.write({"a/1": "1\n", "b/2": "2\n"})
    lab.commit("folders")
    lab.git("sparse-checkout", "set", "--cone", "--sparse-index", "a")
    return {"sparse": True}


@works
def a_sparse_checkout_with_patterns(lab: Lab) -> dict[str, Any]:
    lab.write({"a/1": "1\n", "b/2": "2\n"})
    lab.commit("folders")
    lab.git("sparse-checkout", "set", "--no-cone", "/a/", "/README")
    return {"sparse": True}


@works
def files_with_hostile_names(lab: Lab) -> dict[str, Any]:
    names: list[bytes] = [
        b"a\nb",
        b"tab\there",
        b'"quoted"',
        b"-rf",
        b"caf\xe9",
        b"sp ace ",
        b":(glob)*",
        b"#(touch x)",
    ]
    names += [b"back\\slash", b"$(touch x)", b"*", "é\u202e.txt".encode(), b"n" * 250, b"--", b"~", b"HEAD", b"nul\x01"]
    for name in names:
        (lab.root / os.fsdecode(name)).write_text("x\n")
        (lab.root / os.fsdecode(b"d-" + name[:200])).mkdir()
        (lab.root / os.fsdecode(b"d-" + name[:200]) / os.fsdecode(name)).write_text("y\n")
    lab.commit("names")
    return {}


@works
def symbolic_links(lab: Lab) -> dict[str, Any]:
    for name, target in {"dangling": "no/where", "loop": "loop", "out": "/etc/passwd", "folder": "src"}.items():
        (lab.root / name).symlink_to(target)
    lab.commit("links")
    return {}


@works
def names_that_differ_only_in_case(lab: Lab) -> dict[str, Any]:
    lab.write({"Readme": "1\n", "SRC/app.py": "2\n"})
    lab.commit("case")
    return {}


@works
def deep_folders(lab: Lab) -> dict[str, Any]:
    lab.write({"/".join(["deep"] * 60) + "/file": "x\n"})
    lab.commit("deep")
    return {}


@works
def a_file_named_like_swarm_s_marker(lab: Lab) -> dict[str, Any]:
    lab.write({".swarm-dir.txt": "v0.1.0\n", "swarm": "a file\n", ".gitkeep": "", ".swarmrc": "x"})
    lab.commit("marker")
    return {}


@works
def instructions_that_the_project_has(lab: Lab) -> dict[str, Any]:
    lab.write({"CLAUDE.local.md": "the project's own\n", "CLAUDE.md": "also\n"})
    lab.commit("instructions")
    return {}


@works
def instructions_that_are_a_link(lab: Lab) -> dict[str, Any]:
    (lab.root / "CLAUDE.local.md").symlink_to("README")
    lab.commit("instructions")
    return {}


@works
def instructions_that_are_a_folder(lab: Lab) -> dict[str, Any]:
    lab.write({"CLAUDE.local.md/part": "x\n"})
    lab.commit("instructions")
    return {}


@works
def autocrlf(lab: Lab) -> dict[str, Any]:
    config(lab, core__autocrlf="true", core__safecrlf="false")
    lab.write({"windows.txt": "a\r\nb\r\n"})
    lab.commit("crlf")
    return {}


@works
def eol_and_encoding_attributes(lab: Lab) -> dict[str, Any]:
    lab.write({".gitattributes": "*.bat eol=crlf\n*.u16 text working-tree-encoding=UTF-16\n*.id ident\n"})
    lab.write({"x.bat": "echo\r\n", "x.u16": "wide\n".encode("utf-16"), "x.id": "$Id$\n"})
    lab.commit("attributes")
    return {}


@works
def a_file_that_is_modified_right_after_checkout(lab: Lab) -> dict[str, Any]:
    lab.write({"windows.txt": "a\r\nb\r\n"})
    lab.commit("crlf in the history")
    lab.write({".gitattributes": "*.txt text\n"})
    lab.git("add", ".gitattributes")
    lab.git("commit", "--quiet", "-m", "attributes")
    return {"status": None}


@works
def a_filter_like_lfs(lab: Lab) -> dict[str, Any]:
    store = lab.root.parent / "store"
    store.mkdir()
    bin_ = lab.root.parent / "bin"
    clean = odd.program(
        bin_,
        "clean",
        f'sum=$(tee "{store}/tmp" | sha1sum | cut -c1-40); mv "{store}/tmp" "{store}/$sum"; echo "oid $sum"',
    )
    smudge = odd.program(bin_, "smudge", f'read word sum; cat "{store}/$sum"')
    config(lab, filter__big__clean=f"'{clean}'", filter__big__smudge=f"'{smudge}'", filter__big__required="true")
    lab.write({".gitattributes": "*.bin filter=big -text\n", "a.bin": os.urandom(3000), "b.bin": b"small"})
    lab.commit("big files")
    assert lab.git("show", "HEAD:b.bin").startswith("oid ")
    return {}


# --- settings -------------------------------------------------------------------------------------


@works
def no_file_modes_and_no_case(lab: Lab) -> dict[str, Any]:
    config(lab, core__fileMode="false", core__ignoreCase="true", core__symlinks="false", core__quotePath="true")
    return {}


@works
def worktree_config(lab: Lab) -> dict[str, Any]:
    config(lab, extensions__worktreeConfig="true")
    lab.git("config", "--worktree", "user.name", "only here")
    assert (lab.root / ".git" / "config.worktree").exists()
    return {}


@works
def worktree_config_with_a_worktree_of_its_own(lab: Lab) -> dict[str, Any]:
    config(lab, extensions__worktreeConfig="true")
    lab.git("config", "--worktree", "core.worktree", str(lab.root))
    lab.git("config", "--worktree", "core.bare", "false")
    return {}


@works
def an_index_of_version_4(lab: Lab) -> dict[str, Any]:
    config(lab, index__version="4", feature__manyFiles="true")
    lab.git("update-index", "--index-version=4")
    return {}


@works
def a_split_index(lab: Lab) -> dict[str, Any]:
    config(lab, core__splitIndex="true")
    lab.git("update-index", "--split-index")
    return {}


@works
def an_index_without_checksum(lab: Lab) -> dict[str, Any]:
    config(lab, index__skipHash="true", index__threads="1", core__preloadIndex="false")
    return {}


@works
def an_untracked_cache(lab: Lab) -> dict[str, Any]:
    config(lab, core__untrackedCache="true")
    lab.git("status")
    return {}


@works
def a_file_monitor_of_git_s_own(lab: Lab) -> dict[str, Any]:
    config(lab, core__fsmonitor="true")
    return {}


@works
def a_file_monitor_that_lies(lab: Lab) -> dict[str, Any]:
    liar = odd.program(lab.root.parent / "bin", "monitor", r'[ -z "$LAB_ASKS" ] && printf "token\0" || exit 1')
    config(lab, core__fsmonitor=str(liar).replace(" ", "\\ "))
    lab.env["LAB_ASKS"] = "1"
    return {"environ": {"LAB_ASKS": ""}}


@works
def nobody_s_name(lab: Lab) -> dict[str, Any]:
    config(lab, user__useConfigOnly="true")
    return {"environ": {"GIT_CONFIG_GLOBAL": "/dev/null"}}


@works
def signed_commits_without_a_key(lab: Lab) -> dict[str, Any]:
    config(lab, commit__gpgSign="true", tag__gpgSign="true", gpg__program="/bin/false", log__showSignature="true")
    return {}


@works
def settings_that_change_what_git_prints(lab: Lab) -> dict[str, Any]:
    config(
        lab,
        color__ui="always",
        column__ui="always",
        core__abbrev="4",
        core__pager="/bin/false",
        diff__external="/bin/false",
        diff__noprefix="true",
        diff__renames="copies",
        i18n__logOutputEncoding="UTF-16",
        log__decorate="full",
        status__branch="true",
        status__relativePaths="true",
        status__short="true",
        status__showStash="true",
        trace2__normalTarget="2",
    )
    return {}


@works
def settings_that_hide_changes(lab: Lab) -> dict[str, Any]:
    config(lab, status__showUntrackedFiles="no", diff__ignoreSubmodules="all", core__trustctime="false")
    return {}


@works
def settings_that_change_what_git_does(lab: Lab) -> dict[str, Any]:
    config(
        lab,
        branch__autoSetupMerge="always",
        branch__autoSetupRebase="always",
        checkout__defaultRemote="origin",
        checkout__workers="4",
        core__logAllRefUpdates="always",
        core__sharedRepository="group",
        gc__worktreePruneExpire="now",
        receive__denyCurrentBranch="refuse",
        transfer__hideRefs="refs/heads/swarm",
        worktree__guessRemote="true",
        core__bare="false",
    )
    return {}


@works
def no_logs_of_refs(lab: Lab) -> dict[str, Any]:
    config(lab, core__logAllRefUpdates="false")
    return {}


@works
def settings_by_condition(lab: Lab) -> dict[str, Any]:
    hooks = lab.root.parent / "hooks by branch"
    odd.program(hooks, "post-checkout", "exit 1")
    odd.program(hooks, "reference-transaction", "exit 1")
    (lab.root.parent / "more").write_text(f'[core]\n\thooksPath = "{hooks}"\n\tbigFileThreshold = 1\n')
    lab.git("config", "includeIf.onbranch:swarm/.path", str(lab.root.parent / "more"))
    lab.git("config", f"includeIf.gitdir:{lab.root}/.path", str(lab.root.parent / "missing"))
    return {}


@works
def a_global_ignore_file(lab: Lab) -> dict[str, Any]:
    (lab.root.parent / "ignore").write_text("CLAUDE.local.md\n*.tmp\n.swarm\n.worktrees\n.gitignore\n")
    config(lab, core__excludesFile=str(lab.root.parent / "ignore"))
    return {}


@works
def no_info_folder(lab: Lab) -> dict[str, Any]:
    subprocess.run(["rm", "-r", str(lab.root / ".git" / "info")], check=True)
    return {}


@works
def an_exclude_file_that_is_a_link(lab: Lab) -> dict[str, Any]:
    shared = lab.root.parent / "shared exclude"
    shared.write_text("*.swp")  # no newline at the end
    exclude = lab.root / ".git" / "info" / "exclude"
    exclude.unlink(missing_ok=True)
    exclude.symlink_to(shared)
    return {}


@works
def an_exclude_file_with_strange_lines(lab: Lab) -> dict[str, Any]:
    (lab.root / ".git" / "info").mkdir(exist_ok=True)
    (lab.root / ".git" / "info" / "exclude").write_bytes(b"\xef\xbb\xbf*.a\r\n\xff\xfe\n# <<< swarm <<<\n\n")
    return {}


@works
def ignore_files_that_name_swarm_s_folders(lab: Lab) -> dict[str, Any]:
    lab.write({".gitignore": "/.worktrees/\n/.swarm/\nCLAUDE.local.md\n"})
    lab.commit("ignored")
    return {}


@works
def an_ignore_file_that_hides_everything(lab: Lab) -> dict[str, Any]:
    lab.write({".gitignore": "*\n!*.txt\n"})
    lab.git("add", "--force", ".gitignore")
    lab.git("commit", "--quiet", "-m", "all")
    return {}


@works
def a_main_index_that_is_locked(lab: Lab) -> dict[str, Any]:
    (lab.root / ".git" / "index.lock").touch()
    return {}


@works
def a_main_index_that_is_missing(lab: Lab) -> dict[str, Any]:
    (lab.root / ".git" / "index").unlink()
    return {}


@works
def a_main_index_that_is_broken(lab: Lab) -> dict[str, Any]:
    (lab.root / ".git" / "index").write_bytes(b"DIRC\0\0\0\x02\0\0\0\x01broken")
    return {}


@works
def a_base_folder_that_is_deep(lab: Lab) -> dict[str, Any]:
    return {"worktrees__base_path": "src/agents at/work"}


@works
def another_branch_prefix_beside_a_branch_swarm(lab: Lab) -> dict[str, Any]:
    lab.git("branch", "swarmish")
    lab.git("branch", "swarm-old/developer-feature-x")
    return {}


# --- names of folders -----------------------------------------------------------------------------

FOLDERS = {
    "newline": b"two\nlines",
    "newline-at-the-end": b"line\n",
    "quote": b"it's",
    "double-quote": b'say "hi"',
    "backslash": b"back\\slash\\n",
    "tab": b"a\tb",
    "tmux-format": b"#(touch x)",
    "command": b"$(touch x)`touch y`;touch z",
    "not-utf-8": b"caf\xe9\xff",
    "emoji": "🐝 swarm".encode(),
    "right-to-left": "a\u202eb".encode(),
    "leading-dash": b"-rf",
    "option": b"--git-dir=x",
    "glob": b"[a]*?",
    "colon-and-at": b"host:path@{1}",
    "space-at-the-ends": b" x ",
    "git-like": b"project.git",
    "percent": b"100%s%n",
    "long": b"n" * 240,
    "very-long": b"/".join([b"n" * 200] * 9),
}


@pytest.mark.parametrize("name", FOLDERS.values(), ids=FOLDERS.keys())
def test_a_set_has_a_whole_life_in_a_folder_named(tmp_path: Path, name: bytes) -> None:
    lab = Lab(tmp_path.resolve(), os.fsdecode(name))

    whole_life(lab)

    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["home", os.fsdecode(name).split("/")[0]])
    assert not {"x", "y", "z"} & {p.name for p in lab.root.iterdir()}


def test_a_path_with_no_room_for_a_worktree_is_one_clear_no(tmp_path: Path) -> None:
    """The repository still fits into the system's limit of 4096 bytes, git's folder for a worktree does not."""
    top = tmp_path.resolve()
    room = 3990 - len(str(top)) - 1
    lab = Lab(top, "/".join(["n" * 199] * (room // 200) + ["r" * (room % 200)]))
    before = lab.fingerprint()

    with refused(lab.root, "STATE_DIR", says=r"\d+ bytes too long", hint="shorter path", exit_code=2):
        lab.open(worktrees__durable=False).create("s" * 40, ["a" * 40 + "=developer", "b" * 40 + "=developer"])

    assert lab.fingerprint() == before
    assert not (lab.root / ".worktrees").exists()


# --- submodules in an agent's tree ----------------------------------------------------------------


def test_a_submodule_that_an_agent_populated_is_kept(lab: Lab) -> None:
    part = fresh(lab, "part")
    lab.git("submodule", "--quiet", "add", str(part), "part")
    lab.commit("a submodule")
    swarm = lab.open(worktrees__durable=False)
    before = odd.state(lab)
    tree = swarm.create(SESSION, AGENTS).paths()["developer"]
    lab.git("submodule", "--quiet", "update", "--init", cwd=tree)
    (tree / "part" / "README").write_text("edited in the submodule\n")

    with refused(lab.root.parent, "WORK_AT_RISK", says="feature-x/developer", hint="--force", exit_code=4, left=NOTES):
        swarm.cleanup([SESSION])
    swarm.cleanup([SESSION], force=True)

    assert not tree.exists()
    after = odd.state(lab)
    assert (after["files"], after["refs"], after["worktrees"]) == (before["files"], before["refs"], before["worktrees"])
    swarm.restore(SESSION)
    assert (tree / "part" / "README").read_text() == "edited in the submodule\n"


# --- hooks, monitors and filters ------------------------------------------------------------------

HOOKS = (
    *("post-checkout", "reference-transaction", "post-index-change", "pre-commit", "prepare-commit-msg", "commit-msg"),
    *("post-commit", "post-rewrite", "pre-auto-gc", "post-merge", "pre-rebase", "fsmonitor-watchman", "update"),
)


@pytest.mark.parametrize(
    ("place", "habit"),
    [
        ("hooks", "exit 1"),
        ("hooks", "sleep 300"),
        ("hooks", "exit 0"),
        ("hooksPath", "exit 1"),
        ("template", "exit 1"),
        ("worktree-config", "exit 1"),
    ],
)
def test_no_hook_but_post_checkout_runs_for_swarm(lab: Lab, place: str, habit: str) -> None:
    marks = lab.root.parent / "marks"
    folder = lab.root / ".git" / "hooks" if place == "hooks" else lab.root.parent / "their hooks"
    for hook in HOOKS:
        odd.program(folder, hook, f'echo "{hook}" >> "{marks}"\n{habit}')
    if place == "hooksPath":
        config(lab, core__hooksPath=str(folder))
    if place == "template":
        lab.git("config", "--global", "init.templateDir", str(folder.parent))
    if place == "worktree-config":
        config(lab, extensions__worktreeConfig="true")
        lab.git("config", "--worktree", "core.hooksPath", str(folder))
    swarm = lab.open(worktrees__durable=False, git__timeout=20, setup__post_checkout=False)

    paths = swarm.create(SESSION, AGENTS).paths()
    (paths["developer"] / odd.WORK).write_text("work\n")
    swarm.worktrees()
    swarm.worktrees.show("developer")
    swarm.cleanup([SESSION], force=True)
    swarm.restore(SESSION)
    swarm.worktrees.lock("developer", reason="mine")
    swarm.worktrees.unlock("developer")

    assert (paths["developer"] / odd.WORK).exists()
    assert not marks.exists(), marks.read_text()


def test_the_agents_own_commits_run_the_hooks(lab: Lab) -> None:
    marks = lab.root.parent / "marks"
    odd.program(lab.root / ".git" / "hooks", "pre-commit", f'echo ran >> "{marks}"')
    tree = lab.open(worktrees__durable=False).create(SESSION, AGENTS).paths()["developer"]

    lab.git("commit", "--quiet", "--allow-empty", "-m", "by the agent", cwd=tree)

    assert marks.read_text() == "ran\n"


def test_a_file_monitor_does_not_run_for_swarm(lab: Lab) -> None:
    marks = lab.root.parent / "marks"
    config(lab, core__fsmonitor=str(odd.program(lab.root.parent / "bin", "monitor", f'echo ran >> "{marks}"; exit 1')))
    swarm = lab.open(worktrees__durable=False)

    swarm.create(SESSION, AGENTS)
    swarm.worktrees()
    swarm.cleanup([SESSION], force=True)

    assert not marks.exists()


def _with_filter(lab: Lab, **commands: str) -> None:
    lab.write({".gitattributes": "*.bin filter=odd\n", "a.bin": "content\n", "z.txt": "plain\n"})
    lab.commit("filtered")
    for name, command in commands.items():
        lab.git("config", f"filter.odd.{name}", command)


def test_a_required_filter_that_fails_leaves_nothing(lab: Lab) -> None:
    _with_filter(lab, smudge="echo no key for this file >&2; false", clean="cat", required="true")

    with refused(lab.root.parent, "GIT_FAILED", says="a.bin", hint="git printed", exit_code=1, left=NOTES):
        lab.swarm.create(SESSION, AGENTS)

    assert lab.swarm.sessions() == ()
    assert lab.swarm.operations.unfinished() == ()


def test_a_filter_program_that_is_missing_leaves_nothing(lab: Lab) -> None:
    _with_filter(lab, process="no-such-program-of-anybody filter-process", required="true")

    with refused(
        lab.root.parent,
        "GIT_FAILED",
        says="cannot write the files of .*: no-such-program-of-anybody: not found",
        left=NOTES,
    ):
        lab.swarm.create(SESSION, AGENTS)


def test_a_filter_that_hangs_is_ended_and_leaves_nothing(lab: Lab) -> None:
    pid_file = lab.root.parent / "pid"
    _with_filter(lab, smudge=f'echo $$ > "{pid_file}"; sleep 300; cat', clean="cat", required="true")

    for limit in (3, 30):  # on a busy machine git may need longer until it starts the filter
        with refused(
            lab.root,
            "GIT_TIMEOUT",
            says=rf"did not end within {limit} s",
            hint="git.timeout",
            exit_code=1,
            left=(r"^\.swarm(/|$)",),
        ):
            lab.open(git__timeout=limit, git__jobs=1).create(SESSION, AGENTS)
        if pid_file.exists():
            break

    assert not odd.is_running(int(pid_file.read_text()))


def test_a_failing_filter_that_is_not_required_is_as_with_git_itself(lab: Lab) -> None:
    _with_filter(lab, smudge="false", clean="cat")

    whole_life(lab)


def test_an_object_that_is_missing_leaves_nothing(lab: Lab) -> None:
    blob = lab.git("rev-parse", "HEAD:src/app.py")
    (lab.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()

    with refused(lab.root.parent, "GIT_BROKEN", says=blob, hint="git fsck", exit_code=5, left=NOTES):
        lab.swarm.create(SESSION, AGENTS)


# --- what swarm's own folders are -----------------------------------------------------------------


def test_what_the_user_keeps_in_the_base_folder_stays(lab: Lab) -> None:
    mine = {".worktrees/mine.txt": "mine\n", ".worktrees/other/deep": "mine\n", ".worktrees/.gitignore": "# my own\n"}
    lab.write(mine)
    before = file_digests(lab.root / ".worktrees")

    whole_life(lab)

    assert file_digests(lab.root / ".worktrees") == before


def test_an_ignore_file_comes_into_a_base_folder_of_the_user_and_goes_again(lab: Lab) -> None:
    lab.write({".worktrees/mine.txt": "mine\n"})
    before = file_digests(lab.root / ".worktrees")

    whole_life(lab)

    assert file_digests(lab.root / ".worktrees") == before


def test_an_empty_base_folder_of_the_user_may_be_used(lab: Lab) -> None:
    (lab.root / ".worktrees").mkdir(mode=0o750)

    whole_life(lab)


def test_a_folder_with_a_worktree_below_a_tracked_folder_works(lab: Lab) -> None:
    whole_life(lab, worktrees__base_path="src/trees")


def test_a_socket_in_the_main_checkout_does_not_matter(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lab.root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        whole_life(lab)


# --- no repository, or none to work in ------------------------------------------------------------


def _bare(lab: Lab) -> Path:
    root = lab.root.parent / "bare.git"
    lab.git("clone", "--quiet", "--bare", str(lab.root), str(root))
    return root


def _bare_with_worktree(lab: Lab) -> Path:
    linked = lab.root.parent / "linked"
    lab.git("worktree", "add", "--quiet", "-b", "other", str(linked), cwd=_bare(lab))
    return linked


def _bare_in_dot_git(lab: Lab) -> Path:
    """The layout that worktree users like: a bare clone in ``.git``, all checkouts beside it."""
    top = lab.root.parent / "hub"
    lab.git("clone", "--quiet", "--bare", str(lab.root), str(top / ".git"))
    lab.git("worktree", "add", "--quiet", "-b", "other", str(top / "other"), cwd=top)
    return top / "other"


def _hub(lab: Lab) -> Path:
    return _bare_in_dot_git(lab).parent


def _no_commit(lab: Lab) -> Path:
    root = lab.root.parent / "unborn"
    lab.git("init", "--quiet", str(root))
    return root


def _plain_folder(lab: Lab) -> Path:
    (lab.root.parent / "plain").mkdir()
    return lab.root.parent / "plain"


def _change(path: str, content: bytes) -> Callable[[Lab], Path]:
    def build(lab: Lab) -> Path:
        (lab.root / path).write_bytes(content)
        return lab.root

    return build


def _empty_dot_git(lab: Lab) -> Path:
    folder = lab.root.parent / "hollow"
    (folder / ".git").mkdir(parents=True)
    return folder


def _dot_git_to_nowhere(lab: Lab) -> Path:
    folder = lab.root.parent / "pointer"
    folder.mkdir()
    (folder / ".git").write_text("gitdir: /no/such/place\n")
    return folder


def _lost_worktree(lab: Lab) -> Path:
    linked = lab.root.parent / "linked"
    lab.git("worktree", "add", "--quiet", "-b", "other", str(linked))
    subprocess.run(["rm", "-r", str(lab.root / ".git" / "worktrees")], check=True)
    return linked


def _unknown_format(lab: Lab) -> Path:
    config(lab, core__repositoryFormatVersion="99")
    return lab.root


def _unknown_extension(lab: Lab) -> Path:
    config(lab, core__repositoryFormatVersion="1", extensions__fromTheFuture="true")
    return lab.root


def _objects_gone(lab: Lab) -> Path:
    subprocess.run(["rm", "-r", str(lab.root / ".git" / "objects")], check=True)
    return lab.root


def _commit_gone(lab: Lab) -> Path:
    commit = lab.git("rev-parse", "HEAD")
    (lab.root / ".git" / "objects" / commit[:2] / commit[2:]).unlink()
    return lab.root


def _tree_gone(lab: Lab) -> Path:
    tree = lab.git("rev-parse", "HEAD^{tree}")
    (lab.root / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    return lab.root


NOT_USABLE: dict[str, tuple[Callable[[Lab], Path], str, str, str]] = {
    "bare": (_bare, "NOT_A_REPO", "bare, it has no work tree", "clone that has a work tree"),
    "bare-with-a-linked-worktree": (
        _bare_with_worktree,
        "NOT_A_REPO",
        "no main work tree",
        "clone that has a work tree",
    ),
    "bare-in-dot-git": (_bare_in_dot_git, "NOT_A_REPO", "no main work tree", "clone that has a work tree"),
    "bare-in-dot-git-from-above": (_hub, "NOT_A_REPO", "bare", "clone that has a work tree"),
    "no-commit": (_no_commit, "NOT_A_REPO", "has no commit yet", "git commit --allow-empty -m start"),
    "inside-dot-git": (lambda lab: lab.root / ".git", "NOT_A_REPO", "inside a git directory", "git init|-C DIR"),
    "inside-refs": (lambda lab: lab.root / ".git" / "refs", "NOT_A_REPO", "inside a git directory", "-C DIR"),
    "no-repository": (_plain_folder, "NOT_A_REPO", "not a git repository: .*plain", "git init"),
    "a-file": (lambda lab: lab.root / "README", "NOT_A_REPO", "README.*(not a folder|no such folder)", "-C"),
    "missing": (lambda lab: lab.root / "no" / "where", "NOT_A_REPO", "no such folder", "-C"),
    "below-a-file": (lambda lab: lab.root / "README" / "x", "NOT_A_REPO", "no such folder", "-C"),
    "nul-in-the-path": (lambda lab: Path(f"{lab.root}\0x"), "NOT_A_REPO", "no such folder", "-C"),
    "too-long-a-path": (lambda lab: lab.root / ("x" * 5000), "NOT_A_REPO", "no such folder", "-C"),
    "head-broken": (_change(".git/HEAD", b"garbage\n"), "GIT_BROKEN", "does not recognise", "git status"),
    "head-empty": (_change(".git/HEAD", b""), "GIT_BROKEN", "does not recognise", "git status"),
    "head-of-zeros": (_change(".git/HEAD", b"\0" * 41), "GIT_BROKEN", "does not recognise", "git status"),
    "branch-broken": (_change(".git/refs/heads/main", b"garbage\n"), "GIT_BROKEN", "HEAD|main", "git fsck"),
    "branch-empty": (_change(".git/refs/heads/main", b""), "GIT_BROKEN", "HEAD|main", "git fsck"),
    "config-broken": (_change(".git/config", b"[core\n\tbare = \n"), "GIT_BROKEN", "config", "git status"),
    "config-binary": (_change(".git/config", os.urandom(64) + b"\n[=]\n"), "GIT_BROKEN", "config", "git status"),
    "packed-refs-broken": (_change(".git/packed-refs", b"garbage here\n"), "GIT_BROKEN", "packed-refs", "git fsck"),
    "dot-git-empty": (_empty_dot_git, "GIT_BROKEN", "does not recognise", "git status"),
    "dot-git-to-nowhere": (_dot_git_to_nowhere, "GIT_BROKEN", "pointer", "git status"),
    "a-lost-worktree": (_lost_worktree, "GIT_BROKEN", "linked", "git status"),
    "unknown-format": (_unknown_format, "GIT_BROKEN", "99", "git status"),
    "unknown-extension": (_unknown_extension, "GIT_BROKEN", "extension", "git status"),
    "objects-gone": (_objects_gone, "GIT_BROKEN", "does not recognise", "git fsck"),
    "commit-gone": (_commit_gone, "GIT_BROKEN", "HEAD|main", "git fsck"),
    "tree-gone": (_tree_gone, "GIT_BROKEN", "tree", "git fsck"),
}


@pytest.mark.parametrize(("build", "code", "says", "hint"), NOT_USABLE.values(), ids=NOT_USABLE.keys())
def test_one_clear_no_for(lab: Lab, build: Callable[[Lab], Path], code: str, says: str, hint: str) -> None:
    where = build(lab)

    with refused(lab.root.parent, code, says=says, hint=hint, exit_code=5):
        Swarm.open(where, environ=lab.env).create(SESSION, AGENTS)


def test_broken_by_a_half_made_worktree_is_said_so(lab: Lab) -> None:
    """A ``git worktree add`` killed at the wrong moment breaks every git command in the repository."""
    admin = lab.root / ".git" / "worktrees" / "half"
    admin.mkdir(parents=True)
    (admin / "gitdir").write_text(f"{lab.root.parent}/half/.git\n")
    (admin / "HEAD").write_text("ref: refs/heads/half\n")
    (admin / "commondir").touch()

    with refused(lab.root.parent, "GIT_BROKEN", says="commondir", hint="git status", exit_code=5, left=NOTES):
        lab.swarm.create(SESSION, AGENTS)


def test_work_in_a_repository_of_ref_tables_is_seen_saved_and_brought_back(lab: Lab) -> None:
    root = a_reftable(lab)["root"]
    swarm = Swarm.open(root, environ=lab.env)
    tree = swarm.create("fx", ["developer"]).paths()["developer"]
    lab.commit("on the branch", tree)
    lab.git("checkout", "--quiet", "--detach", cwd=tree)
    lab.commit("on no branch", tree)
    lab.write({"README": "edited\n", "loose": "untracked"}, tree)
    head = lab.git("rev-parse", "HEAD", cwd=tree)

    assert [one.path for one in swarm.diff("developer").uncommitted] == ["README"]
    assert swarm.conflicts("fx").unknown == ()
    assert swarm.worktrees.show("developer").commits[0].subject == "on no branch"
    swarm.cleanup(["fx"], force=True)
    swarm.restore("fx")

    assert lab.git("rev-parse", "HEAD", cwd=tree) == head
    assert (tree / "loose").read_text() == "untracked"
