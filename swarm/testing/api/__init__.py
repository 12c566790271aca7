"""A scripted stand-in for the model APIs of the agent programs, on loopback."""

from swarm.testing.api.script import Request, Turn, call, code, fail, hang, hold, say
from swarm.testing.api.server import Api

__all__ = ["Api", "Request", "Turn", "call", "code", "fail", "hang", "hold", "say"]
