"""The template of ``swarm role init``."""

from swarm.project.names import PROGRAMS_IN_WORDS

TEMPLATE = """\
# A role: what an agent is told to be, and what it may do. `swarm role check NAME` finds every mistake.
name: NAME
description: What it is for, in one line.

# What the agent is told. Long texts may stand in a file beside this one: `instructions_file: NAME.md`.
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

# --- what it may do: deny wins, what no rule settles is asked -------------------------------------------
# permissions:
#   allow: [Read, Glob, Grep, "Bash(git *)", "Edit(docs/**)"]
#   deny: ["Bash(git push *)", "Read(.env)"]
#   unclear: ask                # or deny: what is done when nobody can tell whether a deny rule is met
#   agent:                      # a model that answers what no rule settles
#     instructions: Allow what only reads. Deny what leaves the machine. Ask about everything else.
#     model: haiku
#     timeout: 45s

# may: [stop, cleanup]          # to what others started; counts in your own directories (~/.swarm/roles) alone

# --- its environment: yours, with these changes ------------------------------------------------------
# env:
#   pass: [ANTHROPIC_*, SSH_AUTH_SOCK]  # only these, beside what swarm and a terminal need
#   drop: [AWS_*]
#   set: {CI: "1"}
# telemetry: true               # send measurements, whatever the setting telemetry.enabled says

# --- what happens while it works ------------------------------------------------------------------
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
#   branch_from: main           # read and checked, not acted on yet (`swarm role check` says so)

# --- how much it may use up --------------------------------------------------------------------------
# limits: {tokens: 2000000, cost: 5.00, minutes: 60, agents: 2}
""".replace("PROGRAMS", PROGRAMS_IN_WORDS)
