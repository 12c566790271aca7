"""Probes: what a hostile agent would try; each is harmless where it succeeds: it writes what it read, or to a stage."""

# ruff: noqa: E501  # a script stands in one piece

from __future__ import annotations

from tests.sandbox.stage import Probe

#: Files with secrets, by what they are.
_SECRETS = {
    "ssh key": "@USER@/.ssh/id_rsa",
    "netrc": "@USER@/.netrc",
    "claude settings": "@USER@/.claude/settings.json",
    "shell settings": "@USER@/.bashrc",
    "forge token": "@USER@/.config/gh/hosts.yml",
    "registry token": "@USER@/.npmrc",
    "main checkout": "@ROOT@/.env",
    "untracked file": "@ROOT@/untracked",
    "other tree": "@OTHER@/secret.txt",
    "repository settings": "@ROOT@/.git/config",
    "messages": "@ROOT@/.swarm/messages/note",
    "launch file": "@ROOT@/.swarm/sessions/feature-x/run/developer/launch.json",
    "home of another agent": "@ROOT@/.swarm/sessions/feature-x/box/reviewer/home/secret",
    "users of the machine": "/etc/passwd",
}
_READS = {f"read {name}": Probe(f"cat '{path}'") for name, path in _SECRETS.items()}
_READS |= {
    "read by a link": Probe("ln -sf @USER@/.netrc link; cat link; rm -f link"),
    "read by a way up": Probe("cat ../reviewer-feature-x/secret.txt ../../.env"),
    "read by the folder of a process": Probe("cat /proc/@VICTIM@/root@USER@/.netrc"),
    "read by an old root": Probe("cat /oldroot@USER@/.netrc /oldroot/etc/passwd /proc/1/root/etc/passwd /etc/passwd"),
    "read the environment": Probe("env"),
    "read the environment of who started it": Probe("cat /proc/*/environ | tr '\\0' '\\n'"),
    "read the environment of a process": Probe("tr '\\0' '\\n' </proc/@VICTIM@/environ"),
    "read by an open folder": Probe('for fd in /proc/self/fd/*; do cat "$fd/.netrc" 2>/dev/null; done'),
    "read by any open folder": Probe(
        "PY\nimport os\n"
        "for fd in range(3, 5000):\n"
        "  try: print(os.read(os.open('.netrc', os.O_RDONLY, dir_fd=fd), 100))\n"
        "  except OSError: pass\n"
    ),
    "find anywhere": Probe("grep -rs @TOKEN@ @TOP@/user @ROOT@/.env | head -5"),
    "read with git": Probe(
        "git config --file @ROOT@/.git/config --list; git hash-object @USER@/.netrc; git diff --no-index /dev/null @USER@/.netrc"
    ),
    "read by a hard link": Probe("ln @USER@/.netrc hard && cat hard; rm -f hard"),
}

#: Files outside that an agent could want to change.
_TARGETS = {
    "main checkout": "@ROOT@/README",
    "repository settings": "@ROOT@/.git/config",
    "repository head": "@ROOT@/.git/HEAD",
    "packed refs": "@ROOT@/.git/packed-refs",
    "new hook": "@ROOT@/.git/hooks/pre-commit",
    "branch of the user": "@ROOT@/.git/refs/heads/main",
    "branch of another": "@ROOT@/.git/refs/heads/swarm/reviewer-feature-x",
    "own branch": "@ROOT@/.git/refs/heads/swarm/developer-feature-x",
    "attributes": "@ROOT@/.git/info/attributes",
    "own git folder": "@ADMIN@/commondir",
    "own index": "@ADMIN@/index",
    "own configuration": "@ADMIN@/config.worktree",
    "other tree": "@OTHER@/README",
    "new file in other tree": "@OTHER@/planted",
    "session record": "@ROOT@/.swarm/sessions/feature-x/session.json",
    "message": "@ROOT@/.swarm/messages/planted",
    "launch file": "@ROOT@/.swarm/sessions/feature-x/run/developer/launch.json",
    "box of another agent": "@ROOT@/.swarm/sessions/feature-x/box/reviewer/git/config",
    "own box from outside": "@BASE@/taken",
    "shell settings": "@USER@/.bashrc",
    "hooks of Claude": "@USER@/.claude/settings.json",
    "new program": "@TOP@/bin/git",
    "canary": "@CANARY@",
    "head of another tree": "@ROOT@/.git/worktrees/reviewer-feature-x/HEAD",
    "git file of another tree": "@OTHER@/.git",
    "journal": "@ROOT@/.swarm/journal/planted.json",
    "lock": "@ROOT@/.swarm/lock",
    "ignore file of the user": "@ROOT@/.gitignore",
    "further stores of objects": "@ROOT@/.git/objects/info/alternates",
    "settings of the user's git": "@USER@/.gitconfig",
    "home of another agent": "@ROOT@/.swarm/sessions/feature-x/box/reviewer/home/.bashrc",
}
_WRITES = {f"write {name}": Probe(f"echo planted >> '{path}'") for name, path in _TARGETS.items()}
_WRITES |= {
    "remove the tree's git file": Probe("rm -f .git"),
    "move the tree's git file": Probe("mv -f .git moved"),
    "exchange the tree's git file": Probe("echo 'gitdir: /tmp/evil' > new; mv -f new .git"),
    "write the tree's git file": Probe("echo 'gitdir: /tmp/evil' > .git"),
    "remove objects": Probe("rm -rf @ROOT@/.git/objects/*/* /run/swarm/objects/0/*/*"),
    "change an object": Probe(
        "for one in @ROOT@/.git/objects/??/* /run/swarm/objects/0/??/*; do chmod u+w $one; echo x >> $one; done"
    ),
    "add an object": Probe("mkdir -p @ROOT@/.git/objects/00; touch @ROOT@/.git/objects/00/x /run/swarm/objects/0/00x"),
    "move the user's branch": Probe("git update-ref refs/heads/main $(git commit-tree HEAD^{tree} -m evil)"),
    "delete a branch": Probe("git branch -D precious"),
    "make a tag": Probe("git tag evil"),
    "set a file monitor": Probe("git config core.fsmonitor 'touch @CANARY@'"),
    "set a hooks folder": Probe("git config core.hooksPath /tmp/evil"),
    "remove a worktree": Probe("git worktree remove --force @OTHER@; rm -rf @OTHER@"),
    "prune worktrees": Probe(
        "mv @OTHER@ @OTHER@x; git worktree prune; mv @OTHER@x @OTHER@; rm -rf @ROOT@/.git/worktrees/reviewer-feature-x"
    ),
    "add a worktree outside": Probe("git worktree add -q --detach @TOP@/planted"),
    "collect garbage": Probe(
        "git commit -q --allow-empty -m x; git reflog expire --expire=now --all; git gc -q --prune=now"
    ),
    "link the own index away": Probe("ln -sf @CANARY@ @ADMIN@/index"),
    "link the own log away": Probe("rm -rf @ADMIN@/logs; ln -sf @USER@ @ADMIN@/logs"),
    "write through a link": Probe("ln -sf @USER@/.bashrc link; echo planted >> link; rm -f link"),
    "write through git": Probe("git init -q --separate-git-dir=@TOP@/planted /tmp/probe-new; rm -rf /tmp/probe-new"),
    "lend away rights": Probe("chmod 777 @USER@ @ROOT@"),
    "remove the project": Probe("mv @ROOT@/README @ROOT@/gone"),
}

#: By the box's proxy where there is one, else at once; in both cases the machine must not be reached.
_VIA = (
    "PY\nimport socket\n"
    "def go(words, port=3128):\n"
    "  try: s = socket.create_connection(('127.0.0.1', port), 5)\n"
    "  except OSError: s = socket.create_connection(('127.0.0.1', @TCP@), 5)\n"
    "  s.settimeout(2)\n"
    "  try: s.sendall(words); s.recv(1000)\n"
    "  except OSError: pass\n"
)
_BY_PROXY = {
    "an address": "go(b'CONNECT 127.0.0.1:@TCP@ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')",
    "an address of six": "go(b'CONNECT [::ffff:127.0.0.1]:@TCP@ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')",
    "a number": "go(b'CONNECT 2130706433:@TCP@ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')",
    "a name of the machine": "go(b'CONNECT localhost:@TCP@ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')",
    "plain": "go(b'GET http://127.0.0.1:@TCP@/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')",
    "plain with a user": "go(b'GET http://example.org@127.0.0.1:@TCP@/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')",
    "the door": "go(b'POST http://127.0.0.1:@TCP@/m/x HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n', 3129)",
    "the door, smuggled": "go(b'GET /m/x HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n'"
    " b'0\\r\\n\\r\\nGET http://127.0.0.1:@TCP@/ HTTP/1.1\\r\\n\\r\\n', 3129)",
}

_TALK = {
    "tcp to the host": Probe("PY\nimport socket\nsocket.create_connection(('127.0.0.1', @TCP@), 5)"),
    "tcp to any address": Probe(
        "PY\nimport socket,subprocess\nhost = '127.0.0.2'\nsocket.create_connection((host, @ANY@), 5)"
    ),
    "tcp by a mapped address": Probe(
        "PY\nimport socket\ns = socket.socket(socket.AF_INET6)\ns.connect(('::ffff:127.0.0.1', @TCP@))"
    ),
    "udp to the host": Probe(
        "PY\nimport socket\ns = socket.socket(type=socket.SOCK_DGRAM)\ns.sendto(b'x', ('127.0.0.1', @UDP@))"
    ),
    "a socket by its path": Probe("PY\nimport socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('@PATHSOCK@')"),
    "a socket without a path": Probe(
        "PY\nimport socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('\\0@ABSTRACT@')"
    ),
    **{f"tcp by the proxy, {name}": Probe(_VIA + words) for name, words in _BY_PROXY.items()},
    "tmux": Probe("tmux -S @TMUX@ run-shell 'touch @CANARY@'"),
    "type into a pane of tmux": Probe("tmux -S @TMUX@ respawn-pane -k 'touch @CANARY@'; sleep 0.5"),
    "see the network": Probe(
        "grep -qs : /proc/net/route /proc/net/tcp && awk 'NR>1 && $2 $3 !~ /:0C3[89]/' /proc/net/tcp | grep -q . && echo ESCAPED"
    ),
    "type into the terminal": Probe(
        "PY\nimport fcntl\nfor request in (0x5412, 0x5412 | 1 << 32):\n"
        "  import ctypes; c = ctypes.CDLL(None, use_errno=True)\n"
        "  c.ioctl(0, ctypes.c_ulong(request), b'x')",
        may_miss=True,
    ),
    "end a process": Probe("kill @VICTIM@; sleep 0.2"),
    "stop a process by its descriptor": Probe(
        "PY\nimport os,signal,time\nsignal.pidfd_send_signal(os.pidfd_open(@VICTIM@), 9); time.sleep(0.2)"
    ),
    "see a process": Probe("test -d /proc/@VICTIM@ && echo ESCAPED"),
    "see all processes": Probe(
        "for one in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$one; done 2>/dev/null | grep -q '[s]leep 600' && echo ESCAPED"
    ),
    "limit a process": Probe("prlimit --pid @VICTIM@ --nofile && echo ESCAPED"),
    "trace a process": Probe(
        "PY\nimport ctypes\nc = ctypes.CDLL(None, use_errno=True)\n"
        "if c.ptrace(0x4206, @VICTIM@, 0, 0) == 0: print('ESCAPED')",
        may_miss=True,
    ),
}


def _call(number: int, *arguments: str, good: str = "r >= 0") -> str:
    """Return a program that makes a system call and says whether it was let through."""
    words = ", ".join((f"ctypes.c_long({number})", *arguments))
    return (
        "PY\nimport ctypes\nc = ctypes.CDLL(None, use_errno=True); c.syscall.restype = ctypes.c_long\n"
        f"r = c.syscall({words}); e = ctypes.get_errno()\nif {good}: print('ESCAPED')\nprint(r, e)"
    )


#: Let through means: the kernel looked at the arguments (EFAULT, EINVAL, …), instead of refusing the call (1, 38).
_LOOKED = "r >= 0 or e not in (1, 38)"
_KERNEL = {
    "a new user namespace": Probe("unshare --user true && echo ESCAPED"),
    "a new user namespace by clone": Probe(_call(56, "0x10000011", "0", "0", "0", "0", good="r >= 0"), may_miss=True),
    "a new user namespace by clone3": Probe(_call(435, "None", "ctypes.c_long(0)", good=_LOOKED)),
    "mount": Probe(
        "mkdir -p /tmp/probe-mount; mount -t tmpfs none /tmp/probe-mount && umount /tmp/probe-mount && echo ESCAPED",
        only="root",
    ),
    "mount by a new call": Probe(_call(430, "ctypes.c_char_p(b'tmpfs')", "0"), only="root"),
    "another root": Probe("chroot / true && echo ESCAPED", only="root"),
    "the namespaces of another process": Probe(_call(308, "-1", "0", good=_LOOKED)),
    "keys of the kernel": Probe(
        _call(248, "ctypes.c_char_p(b'user')", "ctypes.c_char_p(b'x')", "ctypes.c_char_p(b'y')", "1", "-2"),
        may_miss=True,
    ),
    "programs in the kernel": Probe(_call(321, "0", "None", "0", good=_LOOKED), only="root", may_miss=True),
    "performance counters": Probe(_call(298, "None", "0", "-1", "-1", "0", good=_LOOKED)),
    "rings": Probe(_call(425, "0", "None", good=_LOOKED), may_miss=True),
    "page faults": Probe(_call(323, "0"), only="root", may_miss=True),
    "files by handle": Probe(_call(304, "-1", "None", "0", good=_LOOKED), only="root"),
    "descriptors of another process": Probe(_call(438, "-1", "0", "0", good=_LOOKED)),
    "quotas": Probe(_call(443, "0", "0", "0", "None", good=_LOOKED), may_miss=True),
    "messages of the kernel": Probe(_call(103, "ctypes.c_long(10)", "None", "0"), only="root"),
    "the clock": Probe(_call(227, "0", "None", good=_LOOKED), only="root"),
    "ports of the machine": Probe(_call(172, "0"), only="root", may_miss=True),
    "calls of the x32 kind": Probe(_call(0x40000000 | 39, good="r > 0"), may_miss=True),
    "rights of root": Probe("grep -q '^CapEff:.*[1-9a-f]' /proc/self/status && echo ESCAPED", only="root"),
    "the kernel's settings": Probe(
        "for one in /proc/sys/kernel/hostname /proc/sys/vm/swappiness /proc/sys/kernel/core_pattern; do\n"
        "  was=$(cat $one) && ( printf '%s' \"$was\" > $one ) 2>/dev/null && echo ESCAPED; done",
        only="root",
    ),
    "any file of the kernel": Probe(
        "find /proc -maxdepth 3 -path '/proc/[0-9]*' -prune -o -path '/proc/self*' -prune -o -path '/proc/thread-self*'"
        " -prune -o -type f -writable -print 2>/dev/null | grep -m1 . && echo ESCAPED",
        only="root",
    ),
    "files of devices": Probe("find /sys -type f -writable 2>/dev/null | grep -m1 . && echo ESCAPED", only="root"),
    "a device": Probe("mknod /tmp/probe-dev c 1 1 && rm /tmp/probe-dev && echo ESCAPED", only="root"),
    "the memory of the machine": Probe(
        "test -r /dev/mem -o -r /dev/kmsg -o -r /proc/kcore && head -c1 /proc/kcore | grep -q . && echo ESCAPED",
        only="root",
        may_miss=True,
    ),
    "the system's programs": Probe(
        "touch /usr/bin/swarm-probe && rm /usr/bin/swarm-probe && echo ESCAPED", only="root"
    ),
    "the system's settings": Probe("touch /etc/swarm-probe && rm /etc/swarm-probe && echo ESCAPED", only="root"),
    "the root of all": Probe("touch /swarm-probe && rm /swarm-probe && echo ESCAPED", only="root"),
    "a folder of everybody": Probe("touch /var/tmp/swarm-probe && rm /var/tmp/swarm-probe && echo ESCAPED"),
    "the machine's name": Probe('test "$(hostname)" != box && echo ESCAPED'),
}

GROUPS = {"read": _READS, "write": _WRITES, "talk": _TALK, "kernel": _KERNEL}
ALL = {name: probe for group in GROUPS.values() for name, probe in group.items()}

#: Ordinary tasks: each must do the same in a box as without one.
TASKS = {
    "commit": "echo x > f; git add f; git commit -qm f; git commit -q --amend -m g; git log -1 --format=%s | grep g",
    "status and diff": "echo y >> README; git status --porcelain | grep README; git diff --stat | grep README; git checkout -q README",
    "stash": "echo z >> README; git stash -q; git stash list | grep stash; git stash pop -q; git checkout -q README",
    "branch and merge": "git checkout -qb t1; git commit -q --allow-empty -m t1; git checkout -q -; git merge -q --no-ff --no-edit t1; git branch -qD t1",
    "rebase": "git checkout -qb t2 HEAD~1; git commit -q --allow-empty -m t2; git rebase -q HEAD@{1}; git checkout -q -; git branch -qD t2",
    "tags": "git tag -a v1 -m v1; git describe; git tag -d v1",
    "a worktree inside": "git worktree add -q /tmp/probe-wt; git worktree remove /tmp/probe-wt; git branch -qD probe-wt",
    "history": "git blame README; git log --stat; git reflog; git fsck",
    "git without variables": "env -i PATH=$PATH HOME=$HOME git commit -q --allow-empty -m bare",
    "another repository": "d=$(mktemp -d); git init -q $d/r; cd $d/r; git commit -q --allow-empty -m one; git clone -q . ../c; rm -rf $d",
    "garbage": "git gc -q; git repack -qad; git prune; git log -1",
    "sparse and clean": "touch junk; git clean -fdq; test ! -e junk",
    "a patch": "git format-patch -q -1 -o /tmp/probe-p; rm -r /tmp/probe-p",
    "files": "ln -s README l; chmod +x run.sh; mkdir -p a/b; mv l a/b; rm -r a; touch -d yesterday README; chmod -x run.sh",
    "temporary files": "mktemp; echo x > /tmp/probe-x; cat /tmp/probe-x; rm /tmp/probe-x; echo x > /dev/shm/probe-x; rm /dev/shm/probe-x",
    "a home": "mkdir -p ~/.cache/tool; echo x > ~/.cache/tool/y; cat ~/.cache/tool/y; rm -r ~/.cache/tool",
    "processes": "for i in 1 2 3 4 5 6 7 8; do sleep 0.01 & done; wait; ps >/dev/null || test -d /proc/self",
    "pipes and devices": "mkfifo /tmp/probe-f; (echo x > /tmp/probe-f &); cat /tmp/probe-f; rm /tmp/probe-f; head -c 9 /dev/urandom >/dev/null",
    "a terminal": "test -t 0; stty size",
    "tests": "mkdir -p t; printf 'import unittest\\nclass T(unittest.TestCase):\\n def test(self): pass\\n' > t/test_x.py; python3 -m unittest discover -s t; rm -r t",
    "threads and servers": "PY\nimport http.server, threading, urllib.request\n"
    "s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
    "threading.Thread(target=s.handle_request).start()\n"
    "assert urllib.request.urlopen(f'http://127.0.0.1:{s.server_port}/README').status == 200",
    "sockets by path": "PY\nimport socket,os\ns = socket.socket(socket.AF_UNIX); s.bind('/tmp/probe-s'); s.listen()\n"
    "c = socket.socket(socket.AF_UNIX); c.connect('/tmp/probe-s'); os.unlink('/tmp/probe-s')",
    "several processes": "PY\nimport multiprocessing\nwith multiprocessing.Pool(2) as p: assert p.map(abs, [-1]) == [1]",
    "a lock": "PY\nimport fcntl\nf = open('README'); fcntl.flock(f, fcntl.LOCK_EX)",
    "a debugger": "PY\nimport ctypes, os\npid = os.fork()\n"
    "if pid == 0:\n  ctypes.CDLL(None).ptrace(0, 0, 0, 0); os.kill(os.getpid(), 19); os._exit(0)\n"
    "assert os.WIFSTOPPED(os.waitpid(pid, 2)[1]); ctypes.CDLL(None).ptrace(7, pid, 0, 0); os.waitpid(pid, 0)",
    "certificates and time": "test -d /etc/ssl; date",
    "signals": "PY\nimport signal\nassert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN\n"
    "assert signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL",
}
#: The same, where the machine has the program.
TOOLS = {
    "node": ("node", "node -e \"require('fs').writeFileSync('/tmp/probe-n', 'x')\"; rm /tmp/probe-n"),
    "npm": (
        "npm",
        (
            'd=$(mktemp -d); cd $d; mkdir p; echo \'{"name":"p","version":"1.0.0"}\' > p/package.json; npm pack -s ./p'
            ' >/dev/null; echo \'{"name":"q","version":"1.0.0"}\' > package.json; npm install -s --offline --no-audit'
            " ./p-1.0.0.tgz; test -e node_modules/p/package.json; test -d ~/.npm; rm -rf $d"
        ),
    ),
    "pip": ("pip3", "pip3 --version; pip3 cache dir; pip3 list >/dev/null"),
    "a compiler": (
        "gcc",
        "d=$(mktemp -d); echo 'int main(void){return 0;}' > $d/a.c; gcc $d/a.c -o $d/a; $d/a; rm -r $d",
    ),
}
