"""`swarm diff` names the files of an agent that act on the user's machine by themselves (issue 16, point 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.merging.acting import acting

if TYPE_CHECKING:
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

#: One of each kind, in spellings that file systems take for the same.
ACTING = (
    *(".envrc", "deep/down/.envrc", ".ENVRC", ".husky/pre-commit", "web/.husky/pre-push", ".husky", "lefthook.yml"),
    *(".mcp.json", ".claude/settings.json", "sub/.claude/settings.local.json", ".claude/hooks/a/b.sh", ".claude"),
    *(".codex/config.toml", ".gemini/settings.json", ".opencode/plugin/x.js", "opencode.json", ".cursor/mcp.json"),
    *(".vscode/tasks.json", "x.code-workspace", ".idea/runConfigurations/all.xml", ".devcontainer/devcontainer.json"),
    *(".github/workflows/ci.yml", ".gitlab-ci.yml", "Jenkinsfile", ".circleci/config.yml", ".pre-commit-config.yaml"),
    *("mise.toml", ".tool-versions", ".npmrc", ".yarn/releases/yarn.cjs", ".cargo/config.toml", ".swarm/config.yaml"),
    *(".vscode/two\nlines", ".exrc"),
)
ORDINARY = (
    *("src/app.py", "Makefile", "package.json", "envrc", ".envrc.md", "docs/.github.md", ".github/CODEOWNERS"),
    *("husky/x", "tests/test_mcp.json.py", ".claude.md", "CLAUDE.md", "x/.swarm/config.yaml", ".gitignore"),
)


def test_paths_are_known_by_their_names() -> None:
    missed = [path for path in ACTING if path != ".claude" and not list(acting([path]))]

    assert (missed, list(acting(ORDINARY))) == ([], [])


def test_the_folder_of_the_hooks_counts() -> None:
    assert [one.path for one in acting(["tools/git/pre-commit", "tools/gitx"], "tools/git")] == ["tools/git/pre-commit"]


def test_committed_uncommitted_and_untracked_files_are_named_but_not_deleted_ones(lab: Lab) -> None:
    lab.write({".vscode/tasks.json": "{}", ".github/workflows/old.yml": "on: push\n", ".mcp.json": "{}"})
    lab.commit("project")
    lab.git("config", "core.hooksPath", "tools/git")
    lab.swarm.create("feature-x", ["developer"])
    tree = lab.tree("developer")
    lab.git("rm", "-q", ".github/workflows/old.yml", cwd=tree)
    lab.write({"tools/git/pre-commit": "#!/bin/sh\n", "src/new.py": "1\n"}, tree)
    lab.commit("work", cwd=tree)
    lab.write({".mcp.json": '{"a": 1}', ".npmrc": "x=y\n"}, tree)

    found = {one.path: one.reason for one in lab.swarm.diff("developer", patch=False).acting}

    assert set(found) == {"tools/git/pre-commit", ".mcp.json", ".npmrc"}
    assert "core.hooksPath" in found["tools/git/pre-commit"]
    assert "package manager" in found[".npmrc"]


def test_an_ignored_file_counts_but_not_one_that_the_setup_put_there(lab: Lab) -> None:
    lab.write({".gitignore": ".envrc\n.npmrc\nmise.local.toml\n.exrc\n"})
    lab.commit("project")
    lab.write({".npmrc": "registry=x\n", ".envrc": "of the user\n", "mise.local.toml": "[env]\n"})
    lab.swarm.create("feature-x", ["developer"])
    tree = lab.tree("developer")
    lab.write({".npmrc": "registry=x\n", ".envrc": "touch x\n"}, tree)
    (tree / "mise.local.toml").symlink_to(lab.root / "mise.local.toml")

    assert [one.path for one in lab.swarm.diff("developer", patch=False).acting] == [".envrc"]
