"""The template of ``swarm role init``."""

from swarm.project.names import PROGRAMS_IN_WORDS

TEMPLATE = """\
# A role: an agent's instructions and rights. `swarm role check NAME` finds every mistake.
name: NAME
description: The purpose, in one line.

# The agent's instructions. Long texts may stand in a file of the same folder: `instructions_file: NAME.md`.
instructions: |
  You are the NAME of this project.

  Say here what it is responsible for, how it works, and when it is done.

# --- the program -----------------------------------------------------------------------------------
# agent_type: claude            # PROGRAMS
# command: [my-agent, --flag]   # or any other program
# model: opus
# permission_mode: default      # default, acceptEdits, plan, auto, dontAsk, bypassPermissions
# print: true                   # do the task without a dialog, and end
# system_prompt: Replaces the program's own prompt.
# root_dir: projects/my-app     # the repository it is for: absolute, from ~/, or below the swarm directory
# claude_config_dir: ~/.claude-work

# --- permissions: deny wins; calls that no rule covers are asked -------------------------------------------
# permissions:
#   allow: [Read, Glob, Grep, "Bash(git *)", "Edit(docs/**)"]
#   deny: ["Bash(git push *)", "Read(.env)"]
#   unclear: ask                # or deny: the action if swarm cannot tell whether a deny rule matches
#   agent:                      # a model that decides calls that no rule covers
#     instructions: Allow reading. Deny everything that leaves the machine. Ask about the rest.
#     model: haiku
#     timeout: 45s

# may: [stop, cleanup]          # to what others started; counts in your own directories (~/.swarm/roles) alone

# --- its environment: yours, with these changes ------------------------------------------------------
# env:
#   pass: [ANTHROPIC_*, SSH_AUTH_SOCK]  # only these, and those that swarm and a terminal need
#   drop: [AWS_*]
#   set: {CI: "1"}
# telemetry: true               # send measurements, whether or not telemetry.enabled is set

# --- events while it works ------------------------------------------------------------------
# heartbeat:
#   idle_timeout: 10m
#   message: You have been idle for a while. What is left to do?
#   condition: test -e TODO.md  # only when this command succeeds
# hooks:
#   PostToolUse:
#     - {matcher: Bash, command: ./scripts/after-command, timeout: 10s}
# settings: {includeCoAuthoredBy: false}   # further keys of Claude Code's settings

# --- its worktree: made ready before the first turn, and put away again --------------------------------
# setup:
#   copy: [.env.example]         # untracked files of the main checkout
#   link: [node_modules]
#   run: [npm ci]               # no shell; with one: [sh, -c, '…']
#   ports: [PORT]               # a free port each, as variables
#   timeout: 10m
#   policy: abort               # or warn
# teardown:
#   run: [docker compose down]
#   policy: warn

# worktree:
#   subdir: services/api        # the folder of its worktree in which it works
#   enabled: true               # with `swarm run`: work in a worktree of its own, not in root_dir itself
#   branch_from: main           # with `swarm run`: where its branch starts

# --- how much it may use up --------------------------------------------------------------------------
# limits: {tokens: 2000000, cost: 5.00, minutes: 60, agents: 2}
""".replace("PROGRAMS", PROGRAMS_IN_WORDS)
