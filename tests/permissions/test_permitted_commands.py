"""What agents do all day is neither denied nor asked about where a role has deny rules."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from swarm.permissions.decide import parse_rule
from swarm.permissions.denials import forbid
from swarm.permissions.paths import Place

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.component

DENY = ("Bash(git push *)", "Bash(npm publish *)", "Read(.env)", "Edit(vault/**)")


def quiet(command: str, folder: Path, deny: tuple[str, ...] = DENY) -> str:
    place = Place(str(folder), str(folder), str(folder / "home"), os.path.realpath, lambda _: [])
    found = forbid([parse_rule(text) for text in deny], "Bash", {"command": command}, place)
    return "" if found is None else f"{found.behavior}: {found.reason}"


@pytest.mark.parametrize(
    "command",
    [
        *("git status", "npm test", "npm run build", "python x.py", "python -m pytest -q -x tests", "cat README.md"),
        *("cd sub && make", "cd sub && npm test", "grep -rn foo src", "sed -n 1,5p f", "find . -name '*.py'"),
        *("ls -la", 'echo "$HOME"', "echo $PATH", "pwd", "which python", "env", "true", "make -j4 all", "cargo test"),
        *("go vet ./...", "git diff --stat HEAD~1", "git log --oneline -5 -- src"),
        *("git add -A && git commit -m 'x; y'", "git fetch"),
        *("git commit -m \"$(cat <<'EOF'\nit's done (git push comes later)\nEOF\n)\"",),
        *("git commit --amend --no-edit", "git checkout -b topic", "git switch main", "git stash", "git rebase main"),
        *("git merge --no-ff topic", "git -C sub status", "git --no-pager diff", "git -c core.pager=cat log"),
        *("git -c user.name=x commit -m y", "git -c core.hooksPath=/dev/null commit -m y"),
        *("GIT_EDITOR=true git rebase --continue", "GIT_PAGER=cat git log", "git config user.name x"),
        *("git config --get alias.x", "git grep -n 'git push'", "git show HEAD:README.md", "echo 'git push'"),
        *("grep -rn 'git push' docs", "echo git push", "rg 'npm publish' .", "printf 'git push\\n'"),
        *("for i in 1 2 3; do echo $i; done", "for f in a b; do echo $f.txt; done", "while true; do sleep 1; done"),
        *("i=0; while [ $i -lt 5 ]; do i=$((i+1)); echo $i; done", "for i in {1..3}; do echo $((i * 2)); done"),
        *("n=$(wc -l < f); echo $((n + 1))", "x=$(date +%s); make; echo $(( $(date +%s) - x ))", "echo $((1 + 2))"),
        *("for i in $(seq 1 3); do echo $((i)); done", "echo ${x:-y} ${#x} ${x%.*} ${x:0:3} ${a[0]} ${a[@]}"),
        *("cat > f.py <<'EOF'\nprint('it\\'s `x` $y')\nEOF", "cat <<EOF > f\n$HOME \\\n  x\nEOF"),
        *("cat <<-E\n\tx\n\tE", "python - <<'EOF'\nimport os\nprint(os.environ)\nEOF"),
        *("if [ -f x ]; then cat x; else echo no; fi", '[ -n "$X" ] && echo yes', "test -d src || mkdir src"),
        *('export PATH="$HOME/bin:$PATH"', 'A=1 B="$C" make', "X=$(git rev-parse HEAD)", 'echo "today: `date`"'),
        *("ls | wc -l", "ps aux | grep node", "cat a | sort | uniq -c", "timeout 60 npm test", "time make"),
        *("time -p make", "nice make", "nohup ./serve > log 2>&1 &", "env A=1 make", 'env A="$B" make'),
        *("sudo apt-get install -y jq", "uv run pytest -q", "npx tsc --noEmit", "xargs -n1 echo < list"),
        *("git ls-files | xargs echo | head", "bash script.sh", "bash -c 'make && ls'", "sh ./run.sh --fast"),
        *("bash -o pipefail -c 'a | b'", "bash -x run.sh", ". .venv/bin/activate && pytest", "source ~/.bashrc"),
        *('. "$HOME/.cargo/env" && cargo build', "trap 'rm -f x' EXIT", "watch -n5 'ls -l'", "eval 'ls -l'"),
        *("set -euo pipefail", "docker compose up -d", "docker exec c ls", "ssh host uptime", "tmux new -d 'make'"),
        *("curl -s https://x.org | jq .", "curl -fsSL -o out https://x.org", "wget -q https://x.org/a"),
        *("tar xzf a.tgz", "tar -C out -xf a.tar", "gzip -c f > g", "sed -i s/a/b/ src/x"),
        *("perl -pi -e 's/a/b/' src/x", "cp a b", "mv a b", "rm -rf build", "mkdir -p out/x", "touch a"),
        *("jq -r .name package.json", "awk '{print $1}' f", "sort -o out in", "diff a b", "chmod +x run.sh"),
        *("ln -s a b", "find . -name '*.py' -exec grep -n foo README.md ';'", "find src -type f | head"),
        *("grep -n -A3 foo x.py", "kill %1", "python -c 'print(1)'", "node -e 'console.log(1)'"),
        *("printf -v x '%s' y", "read -r line < f", "declare -a a", "a[1]=2", "echo x > out.txt 2>&1"),
        *("ls 2>/dev/null", "make 2>&1 | tee log", "diff <(sort a) <(sort b)", "(cd x && make)", "{ make; ls; }"),
        *("! grep -q x f", 'test "$(git branch)" = main', "date '+%F'", "git worktree list", "git push-x"),
        *('git -C "$D" status', 'git -C "$D" log $X', 'git commit -m "$M"', "ls $X", "/usr/bin/git log $X"),
        *("ls | xargs timeout 5 echo", "ls | xargs -n1 nice ls"),
    ],
)  # fmt: skip
def test_ordinary_commands(command: str, tmp_path: Path) -> None:
    assert quiet(command, tmp_path) == ""
